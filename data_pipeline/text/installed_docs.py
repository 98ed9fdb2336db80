"""The default corpus: English prose that exists on every machine that can run this project.

The documentation of Python and of the installed packages is read from their sources with `ast`
(nothing is imported but the help texts of the standard library). Only sentences that look like
prose are taken. So a first training needs no download.
"""

import ast
import importlib.util
import itertools
import os
import re
import sysconfig
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from pydoc_data.topics import topics as HELP_TOPICS

from data_pipeline.errors import InputError
from data_pipeline.text.corpus import Document
from data_pipeline.text.sentences import split_sentences

#: Import names of the packages to read if installed; "python" is the standard library.
PACKAGES = tuple(
    "PIL absl attr click dateutil google grpc h5py keras keras_nlp markdown markdown_it "
    "matplotlib numpy oauthlib opt_einsum packaging pip pkg_resources pydantic pyparsing "
    "python requests rich setuptools tensorboard tensorflow tensorflow_addons "
    "tensorflow_estimator tensorflow_hub tensorflow_text tqdm typer urllib3 werkzeug wheel "
    "yaml".split()
)

_MIN_SENTENCES = 3  # of a document
_MIN_WORDS = 4  # of a sentence
_MIN_LETTERS = 0.87  # fraction of letters and spaces in a sentence

# Tests, copies of other packages, and folders with megabytes of code or tables but no prose.
_SKIPPED_FOLDERS = {"__pycache__", "idlelib", "lib2to3", "site-packages", "test", "tests"}
_SKIPPED_FOLDERS |= {"_api", "_distutils", "_vendor", "encodings", "pydoc_data"}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
#: Where a statement has other statements. Expressions, most of a module, define nothing.
_BLOCKS = ("body", "handlers", "orelse", "finalbody", "cases")
_SKIPPED_FILE = re.compile(r"_pb2|(^|_)test(ing)?[_.]")

#: Lines that are not prose: titles of sections, underlines, tables, directives, code, and entries
#: of NumPy's lists such as "axis : int, optional".
_NOT_PROSE = re.compile(
    r"([=\-~^*#\"'`+._:])\1{2,}\s*$|[+|].*[+|]$|[=+\-|\s]{5,}$|\.\. |```|@\w|>>>|In \[|\$ |%"
    r"|\*{0,2}\w+(?:, ?\*{0,2}\w+)* : \S|(?:import|from|def|class|with|return) \S.*\w$"
    r"|[A-Z][\w ]{0,30}:$"
)
#: How an item of a list starts: a bullet, a field of reST, or a name such as "axis (int): ".
_ITEM = re.compile(
    r"(?:[-*+•]|\(?\d{1,2}[.)]|\[\d+\])\s+"
    r"|:(?:param|arg|type|returns?|rtype|raises|ivar|cvar|var)\b[^:]*:\s*"
    r"|\*{0,2}`{0,2}[A-Za-z_][\w.]*`{0,2}(?: \([^()]*\))?: +"
)
#: Markup inside a line, and its replacement.
_MARKUP = (
    (re.compile(r"\[([^\]]+)\]\((?:https?:|#|/|\.)[^)\s]*\)"), r"\1"),  # [text](url)
    (re.compile(r"`([^`<]+?)\s*<[^`>]+>`_{1,2}"), r"\1"),  # `text <url>`_
    (re.compile(r":[\w:+-]+:`[~!]?([^`<]+?)(?:\s*<[^`>]*>)?`"), r"\1"),  # :role:`text`
    (re.compile(r"`{1,2}([^`]+)`{1,2}_{0,2}"), r"\1"),
    (re.compile(r"(?<!\w)\*{1,2}([^*\s][^*]*)\*{1,2}(?!\w)"), r"\1"),
    (re.compile(r"\\([*_`|])"), r"\1"),
)
_CODE_IN_PROSE = re.compile(
    r"\bTODO\b|https?:|www\.|==|::|:=|->|=>|<=|>=|[{}<>|\\$^~#]|\w=\S|\s=\s|\w\[|\)\(|\.\.\.|__\w+__|`|\*\w|_\s"
)
_SENTENCE = re.compile(
    r"[\"'(]?(?:[A-Z]|[a-z_][\w.]*(?:\(\))? (?:is|are|was|must|should)\b).*[.!?][\"')]*"
)


def installed_documentation(packages: Iterable[str] | None = None) -> Iterator[Document]:
    """Yields the documentation of packages, by default the installed ones of `PACKAGES`, as prose.

    Each module is a document. A repeated paragraph, as in copied modules, is used only where it
    occurs first. The same installation gives the same documents in the same order. Raises
    InputError if one of `packages` is not installed.
    """
    seen: set[str] = set()
    for package in sorted(set(PACKAGES if packages is None else packages)):
        folders = _folders(package)
        if not folders and packages is not None:
            raise InputError(f"The package `{package}` is not installed.")
        for name, texts in _modules(package, folders):
            if paragraphs := _new_prose(texts, seen):
                yield Document(name, tuple(paragraphs))


def _folders(package):
    if package == "python":
        return [sysconfig.get_path("stdlib")]
    spec = importlib.util.find_spec(package)  # finds a top-level package without importing it
    return sorted(spec.submodule_search_locations or []) if spec else []


def _modules(package, folders):
    """Yields (name, docstrings) of every module, and of every help text of Python."""
    for folder in folders:
        for parent, children, files in os.walk(folder):
            children[:] = sorted(set(children) - _SKIPPED_FOLDERS)
            for file in sorted(files):
                if file.endswith(".py") and not _SKIPPED_FILE.search(file):
                    path = Path(parent, file)
                    yield f"{package}/{path.relative_to(folder).as_posix()}", _docstrings(path)
    if package == "python":
        for topic, text in sorted(HELP_TOPICS.items()):
            yield f"python/topics/{topic}", [text]


def _docstrings(path):
    """Returns the docstrings of a module and its definitions, in order."""
    source = path.read_bytes()
    if b'"""' not in source and b"'''" not in source:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's strings
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []  # a template, or a test for another version of Python: not documentation
    nodes = sorted(_definitions(tree), key=lambda node: getattr(node, "lineno", 0))
    return filter(None, map(ast.get_docstring, nodes))


def _definitions(node):
    """Yields a module, and the classes and functions in it, at any depth."""
    if isinstance(node, _DOCUMENTED):
        yield node
    for name in _BLOCKS:
        for child in getattr(node, name, ()):
            yield from _definitions(child)


def _new_prose(docstrings, seen):
    """Returns the paragraphs that are not in `seen`, unless they have too few sentences."""
    paragraphs, count = [], 0
    for text in itertools.chain.from_iterable(map(_prose_blocks, docstrings)):
        sentences = split_sentences(Document("", (text,)))
        kept = list(filter(_is_prose, sentences))
        paragraph = " ".join(kept)
        # A paragraph that is half code makes no sense without that half.
        if 2 * len(kept) > len(sentences) and paragraph not in seen:
            seen.add(paragraph)
            paragraphs.append(paragraph)
            count += len(kept)
    return paragraphs if count >= _MIN_SENTENCES else []


def _prose_blocks(text):
    """Yields the paragraphs of a docstring; each item of a list is one."""
    lines = []
    for line in (*text.splitlines(), ""):
        line = line.strip()
        is_prose, item = line and not _NOT_PROSE.match(line), _ITEM.match(line)
        if lines and (item or not is_prose):
            yield _without_markup(" ".join(lines))
            lines = []
        if is_prose:
            lines.append(line[item.end() :] if item else line)


def _without_markup(text):
    for pattern, replacement in _MARKUP:
        text = pattern.sub(replacement, text)
    return " ".join(text.split())


def _is_prose(sentence):
    letters = sum(map(str.isalpha, sentence)) + sentence.count(" ")
    return (
        len(sentence.split()) >= _MIN_WORDS
        and letters >= _MIN_LETTERS * len(sentence)
        and _SENTENCE.fullmatch(sentence) is not None
        and _CODE_IN_PROSE.search(sentence) is None
    )
