"""The default corpus: English prose that exists on every machine that can run this project.

The documentation of Python and of the installed packages is read from their sources with `ast`
(nothing is imported but the help texts of the standard library) and stripped of code, tables,
headings and markup, by the conventions of Google, NumPy and reST docstrings. So a first training
needs no download.
"""

import ast
import importlib.util
import inspect
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
_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

_SKIPPED_FILE = re.compile(r"_pb2|(^|_)test(ing)?[_.]")

# Whole lines, and starts of blocks, that are not prose.
_UNDERLINE = re.compile(r"([=\-~^*#\"'`+._:])\1{2,}\s*$")
_SECTION = re.compile(r"[A-Z][\w ]{0,30}:$|#+ ")
_NUMPY_ENTRY = re.compile(r"\*{0,2}\w+(?:, ?\*{0,2}\w+)* : \S")  # "axis : int, optional"
_TABLE_LINE = re.compile(r"[+|].*[+|]$|[=+\-|\s]{5,}$")
_DIRECTIVE = re.compile(r"\.\. *([\w:-]+?)::\s*(.*)$")
_PROSE_DIRECTIVES = {"caution", "deprecated", "hint", "important", "note", "seealso", "tip"}
_PROSE_DIRECTIVES |= {"versionadded", "versionchanged", "warning"}
_FIELD = re.compile(r":(?:param|arg|type|returns?|rtype|raises|ivar|cvar|var)\b[^:]*:\s*")
_BULLET = re.compile(r"(?:[-*+•]|\(?\d{1,2}[.)]|\[\d+\])\s+")
_ENTRY = re.compile(r"\*{0,2}`{0,2}([A-Za-z_][\w.]*)`{0,2}(?: \([^()]*\))?: +(?=[A-Z`])")
_CODE_LINE = re.compile(r"(>>>|\.\.\. |In \[|\$ |%|@\w|(import|from|def|class|with|return) .*\w)")

_MARKUP_SIGN = re.compile(r"[`*_<\[\\]|::")
# Markup inside a line, and its replacement.
_MARKUP = (
    (re.compile(r"\[([^\]]+)\]\((?:https?:|#|/|\.)[^)\s]*\)"), r"\1"),  # [text](url)
    (re.compile(r"`([^`<]+?)\s*<[^`>]+>`_{1,2}"), r"\1"),  # `text <url>`_
    (re.compile(r":[\w:+-]+:`[~!]?([^`<]+?)(?:\s*<[^`>]*>)?`"), r"\1"),  # :role:`text`
    (re.compile(r"\s*\[#?\w{1,12}\]_"), ""),  # footnote
    (re.compile(r"`{1,2}([^`]+)`{1,2}_{0,2}"), r"\1"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"\1"),
    (re.compile(r"(?<!\w)\*([^*\s][^*]*)\*(?!\w)"), r"\1"),
    (re.compile(r"(?<!\w)_([^_\s][^_]*)_(?!\w)"), r"\1"),
    (re.compile(r"</?\w[^>]*>"), ""),
    (re.compile(r"\\([*_`|])"), r"\1"),
    (re.compile(r"::(?=\s|$)"), ":"),
)
_CODE_IN_PROSE = re.compile(
    r"\bTODO\b|https?:|www\.|==|::|:=|->|=>|<=|>=|[{}<>|\\$^~#]|\w=\S|\s=\s|\w\[|\)\(|\.\.\.|__\w+__|`|\*\w|_\s"
)
_BROKEN_END = re.compile(
    r"(?:,|\b(?:a|an|and|are|as|at|be|by|for|from|if|in|into|is|of|on|or|that|the|to|when|with))$"
)
_SENTENCE_START = re.compile(r"[\"'(]?(?:[A-Z]|[a-z_][\w.]*(?:\(\))? (?:is|are|was|must|should)\b)")


def installed_documentation(packages: Iterable[str] | None = None) -> Iterator[Document]:
    """Yields the documentation of packages, by default the installed ones of `PACKAGES`, as prose.

    Each class (with its methods) and each function of a module is a document. Those that are too
    short become part of the module's own document. A repeated paragraph, as in copied modules, is
    used only where it occurs first.

    The same installation gives the same documents in the same order. Raises InputError if one of
    `packages` is not installed.
    """
    seen: set[str] = set()
    for package in sorted(set(PACKAGES if packages is None else packages)):
        folders = _folders(package)
        if not folders and packages is not None:
            raise InputError(f"The package `{package}` is not installed.")
        for name, pages in _modules(package, folders):
            yield from _documents(name, pages, seen)


def _folders(package):
    if package == "python":
        return [sysconfig.get_path("stdlib")]
    spec = importlib.util.find_spec(package)  # finds a top-level package without importing it
    return sorted(spec.submodule_search_locations or []) if spec else []


def _modules(package, folders):
    """Yields (name, pages) of every module, and of every help text of Python."""
    for folder in folders:
        for parent, children, files in os.walk(folder):
            children[:] = sorted(set(children) - _SKIPPED_FOLDERS)
            for file in sorted(files):
                if file.endswith(".py") and not _SKIPPED_FILE.search(file):
                    path = Path(parent, file)
                    yield f"{package}/{path.relative_to(folder).as_posix()}", _pages(path)
    if package == "python":
        for topic, text in sorted(HELP_TOPICS.items()):
            yield f"python/topics/{topic}", [("", [text])]


def _pages(path):
    """Returns (title, docstrings) of a module, title "", and of its classes and functions."""
    source = path.read_bytes()
    if b'"""' not in source and b"'''" not in source:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's strings
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return []  # a template, or a test for another version of Python: not documentation
    own = ast.get_docstring(tree, clean=False)
    pages = [("", [own] if own else [])]
    return pages + [(node.name, list(_docstrings(node))) for node in _definitions_in(tree)]


def _docstrings(node):
    """Yields the docstrings of a class or function and of all definitions inside it, in order."""
    docstring = ast.get_docstring(node, clean=False)
    if docstring:
        yield docstring
    for inner in _definitions_in(node):
        yield from _docstrings(inner)


def _definitions_in(node):
    # Definitions may be inside `if` or `try`, usually one level deep.
    bodies = [node.body, *(item.body for item in node.body if isinstance(item, (ast.If, ast.Try)))]
    found = [item for body in bodies for item in body if isinstance(item, _DEFINITIONS)]
    return sorted(found, key=lambda item: item.lineno)


def _documents(name, pages, seen):
    """Yields the long pages of a module as documents, then the short ones as a single document."""
    rest, rest_count = [], 0
    for title, docstrings in pages:
        paragraphs, count = _new_prose(docstrings, seen)
        if title and count >= _MIN_SENTENCES:
            yield Document(f"{name}:{title}", tuple(paragraphs))
        else:
            rest += paragraphs
            rest_count += count
    if rest_count >= _MIN_SENTENCES:
        yield Document(name, tuple(rest))


def _new_prose(docstrings, seen):
    """Returns the paragraphs that are not in `seen`, and the number of their sentences."""
    paragraphs, count = [], 0
    for docstring in docstrings:
        for text in _prose_blocks(inspect.cleandoc(docstring)):
            kept, total = _prose_sentences(text)
            paragraph = " ".join(kept)
            # A paragraph that is half code makes no sense without that half.
            if 2 * len(kept) > total and paragraph not in seen:
                seen.add(paragraph)
                paragraphs.append(paragraph)
                count += len(kept)
    return paragraphs, count


def _prose_blocks(text):
    """Yields the paragraphs of a docstring, without code, tables and headings."""
    lines = text.expandtabs().splitlines()
    block, skip_indent, fence = [], None, False
    for line, following in zip(lines, lines[1:] + [""], strict=bool(lines)):
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if text.startswith("```") and text.count("```") == 1:
            fence = not fence
            text = ""
        elif fence:
            continue
        if skip_indent is not None and text:
            if indent > skip_indent:
                continue
            skip_indent = None
        directive = _DIRECTIVE.match(text)
        ends = not text or directive or _starts_item(text, indent, block)
        if ends and block:
            yield from _joined(block)
            # "::" is followed by a literal block.
            if block[-1][1].endswith("::"):
                skip_indent = block[0][0]
            block = []
        if not text:
            continue
        if directive:
            if directive[1] in _PROSE_DIRECTIVES:
                text = re.sub(r"^[\d.]+\s*", "", directive[2])
                block = [(indent, text)] if text else []
            else:
                skip_indent = indent
        elif _is_heading(text, following.strip()):
            yield from _joined(block)
            if text.lower().startswith(("references", "see also")):
                skip_indent = indent
            block = []
        else:
            block.append((indent, text))
    yield from _joined(block)


def _starts_item(text, indent, block):
    """Returns whether a line starts a list item, an argument's entry or an indented block."""
    if _BULLET.match(text) or _FIELD.match(text) or text.startswith((">>>", "@")):
        return True
    if not block:
        return False
    if _ENTRY.match(text) and indent <= block[0][0]:
        return True
    # The second line of an item is indented more than its first; one space is a slip.
    change = indent - block[-1][0]
    return abs(change) > 1 and (len(block) > 1 or change < 0)


def _is_heading(text, following):
    return bool(
        _SECTION.match(text)
        and len(text.split()) <= 4
        or _UNDERLINE.match(text)
        or _UNDERLINE.match(following)
        or _TABLE_LINE.match(text)
        or _NUMPY_ENTRY.match(text)
    )


def _joined(block):
    """Yields the paragraph of a block of (indent, text), unless it is code or too short."""
    if not block or _CODE_LINE.match(block[0][1]):
        return
    text = " ".join(text for _, text in block)
    for opening in (_BULLET, _FIELD):
        opened = opening.match(text)
        text = text[opened.end() :] if opened else text
    entry = _ENTRY.match(text)
    if entry:
        text = f"{entry[1]}: {text[entry.end() :]}"
    if _MARKUP_SIGN.search(text):
        for pattern, replacement in _MARKUP:
            text = pattern.sub(replacement, text)
    text = " ".join(text.split())
    if len(text.split()) >= _MIN_WORDS:
        yield text


def _prose_sentences(text):
    """Returns the sentences of a paragraph that are prose, and the number of all its sentences."""
    sentences = split_sentences(Document("", (text,)))
    kept = [sentence for sentence in sentences if _is_prose(sentence)]
    # A dropped block leaves a broken end behind ("found in your config file at").
    if kept and (_BROKEN_END.search(kept[-1]) or (kept[-1][-1].isalnum() and len(sentences) > 1)):
        kept.pop()
    return kept, len(sentences)


def _is_prose(sentence):
    if len(sentence.split()) < _MIN_WORDS or _CODE_IN_PROSE.search(sentence):
        return False
    body = _ENTRY.sub("", sentence, count=1)
    letters = sum(map(str.isalpha, sentence)) + sentence.count(" ")
    return bool(_SENTENCE_START.match(body)) and letters >= _MIN_LETTERS * len(sentence)
