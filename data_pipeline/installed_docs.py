"""The default corpus: English prose found on every machine that can run this project.

The documentation of Python and of the installed packages, read from their sources with `ast`
(nothing is imported but the help texts of the standard library) and cleaned of code and markup.
Gives documents as `corpus.py` does, for a first training without a download.
"""

import ast
import importlib.util
import inspect
import json
import os
import re
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics as HELP_TOPICS

from data_pipeline.corpus import Document
from data_pipeline.errors import InputError
from data_pipeline.files import whole_file
from data_pipeline.sentences import split_sentences

#: Import names of the packages read, those absent left out; "python" is the standard library.
PACKAGES = tuple(
    "PIL absl attr click dateutil google grpc h5py keras keras_nlp markdown markdown_it "
    "matplotlib numpy oauthlib opt_einsum packaging pip pkg_resources pydantic pyparsing "
    "python requests rich setuptools tensorboard tensorflow tensorflow_addons "
    "tensorflow_estimator tensorflow_hub tensorflow_text tqdm typer urllib3 werkzeug wheel "
    "yaml".split()
)

MIN_SENTENCES = 3  # of a document
MIN_WORDS = 4  # of a sentence
MIN_LETTERS = 0.87  # share of letters and spaces in a sentence

# Tests, copies of other packages, and folders with megabytes of code or tables but no prose.
_SKIPPED_FOLDERS = {"__pycache__", "idlelib", "lib2to3", "site-packages", "test", "tests"}
_SKIPPED_FOLDERS |= {"_api", "_distutils", "_vendor", "encodings", "pydoc_data"}
_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

_SKIPPED_FILE = re.compile(r"_pb2|(^|_)test(ing)?[_.]")

# What stands alone on its line, or opens a block that is no prose.
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
# Markup inside a line, and what stays of it.
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


def installed_documentation(packages=None) -> Iterator[Document]:
    """Yields the documentation of installed packages, one document per module, as prose.

    The same installation gives the same documents in the same order. A paragraph that occurs
    again, as in copied modules, is kept at its first place only.

    Args:
        packages: iterable of str. Import names; "python" is the standard library. None reads
            those of `PACKAGES` that are installed.

    Raises:
        InputError: If a package asked for is not installed.
    """
    seen = set()
    for package in sorted(set(PACKAGES if packages is None else packages)):
        folders = _folders(package)
        if not folders and packages is not None:
            raise InputError(f"The package `{package}` should be installed. It is not found.")
        for name, docstrings in _raw_documents(package, folders):
            document = _document(name, docstrings, seen)
            if document:
                yield document


def split_heldout(documents, share=0.05):
    """Splits documents into a part to train on and a part to measure on.

    A document's digest decides, so neither order nor additions move the others. Of two or more
    documents with different texts, each part gets at least one.

    Args:
        documents: iterable of Document.
        share: float. Expected share of the held-out part, between 0 and 1.

    Returns:
        tuple of two lists of Document: train, held out. Each in the order received.

    Raises:
        InputError: If `share` is out of range, or there are not two different texts.
    """
    if not 0 < share < 1:
        raise InputError(f"`share` should lie between 0 and 1. Received: {share}.")
    documents = list(documents)
    digests = [document.digest for document in documents]
    ranked = sorted(set(digests))
    if len(ranked) < 2:
        raise InputError("A held-out part needs two different documents at least.")
    limit = f"{int(share * 16**8):08x}"
    # The bounds keep one text on either side when the corpus is small.
    limit = min(max(limit, ranked[1]), ranked[-1])
    train = [item for item, digest in zip(documents, digests, strict=True) if digest >= limit]
    heldout = [item for item, digest in zip(documents, digests, strict=True) if digest < limit]
    return train, heldout


def write_jsonl(documents, path):
    """Writes documents as JSON lines that `read_corpus` reads back: the whole file or none.

    Args:
        documents: iterable of Document. "id" is the name, "text" the paragraphs, one per line.
        path: str or Path. An older file of this name is replaced.

    Raises:
        InputError: If there is no document, or `path` cannot be written.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_lines(documents, path)
    except OSError as error:
        raise InputError(f"`{path}` cannot be written: {error.strerror}.") from error


def _write_lines(documents, path):
    with whole_file(path) as temporary:
        with open(temporary, "w", encoding="utf-8", newline="\n") as file:
            for document in documents:
                record = {"id": document.name, "text": document.text}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
            if not file.tell():
                raise InputError(f"`{path}` would be empty: there is no document to write.")


def _folders(package):
    if package == "python":
        return [sysconfig.get_path("stdlib")]
    spec = importlib.util.find_spec(package)  # finds a top-level package without importing it
    return sorted(spec.submodule_search_locations or []) if spec else []


def _raw_documents(package, folders):
    """Yields (name, docstrings) of every module, and of every help text of Python."""
    for folder in folders:
        for parent, children, files in os.walk(folder):
            children[:] = sorted(set(children) - _SKIPPED_FOLDERS)
            for file in sorted(files):
                if file.endswith(".py") and not _SKIPPED_FILE.search(file):
                    path = Path(parent, file)
                    name = f"{package}/{path.relative_to(folder).as_posix()}"
                    yield name, list(_docstrings(path))
    if package == "python":
        for topic, text in sorted(HELP_TOPICS.items()):
            yield f"python/topics/{topic}", [text]


def _docstrings(path):
    """Yields the docstrings of a module, its classes and functions, in order of appearance."""
    source = path.read_bytes()
    if b'"""' not in source and b"'''" not in source:
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's strings
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return  # a template or a test for another Python; no documentation
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        docstring = ast.get_docstring(node, clean=False)
        if docstring:
            yield docstring
        bodies = [getattr(node, "body", [])]
        # Definitions may stand under `if` or `try`, one level deep as a rule.
        for child in bodies[0]:
            if isinstance(child, (ast.If, ast.Try)):
                bodies.append(child.body)
        inner = [item for body in bodies for item in body if isinstance(item, _DEFINITIONS)]
        waiting.extend(sorted(inner, key=lambda item: -item.lineno))


def _document(name, docstrings, seen):
    """Makes a document of what is new in the docstrings, or None when that is too little."""
    paragraphs, count, new = [], 0, set()
    for docstring in docstrings:
        if docstring in seen or docstring in new:  # a shortcut: its paragraphs are there too
            continue
        new.add(docstring)
        for text in _paragraphs(inspect.cleandoc(docstring)):
            kept, total = _prose_sentences(text)
            paragraph = " ".join(kept)
            # A paragraph that is half code does not read on without that half.
            if 2 * len(kept) > total and paragraph not in seen and paragraph not in new:
                new.add(paragraph)
                paragraphs.append(paragraph)
                count += len(kept)
    if count < MIN_SENTENCES:
        return None
    seen |= new
    return Document(name, tuple(paragraphs))


def _paragraphs(text):
    """Yields paragraphs of a docstring, without the blocks that are code, tables or headings."""
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
            # After "::" comes a literal block, after a heading "Usage:" code as a rule.
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
    """Tells whether a line opens a list item, an argument's entry or an indented block."""
    if _BULLET.match(text) or _FIELD.match(text) or text.startswith((">>>", "@")):
        return True
    if not block:
        return False
    if _ENTRY.match(text) and indent <= block[0][0]:
        return True
    # The second line of an item stands deeper than its first; one space is a slip.
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
    """Yields the paragraph of a block of (indent, text) unless it is code."""
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
    if len(text.split()) >= MIN_WORDS:
        yield text


def _prose_sentences(text):
    """Returns the sentences of a paragraph that read as prose, and the number of all."""
    sentences = split_sentences(Document("", (text,)))
    kept = [sentence for sentence in sentences if _is_prose(sentence)]
    # A broken end ("found in your config file at") is what a dropped block leaves behind.
    if kept and (_BROKEN_END.search(kept[-1]) or (kept[-1][-1].isalnum() and len(sentences) > 1)):
        kept.pop()
    return kept, len(sentences)


def _is_prose(sentence):
    if len(sentence.split()) < MIN_WORDS or _CODE_IN_PROSE.search(sentence):
        return False
    body = _ENTRY.sub("", sentence, count=1)
    letters = sum(map(str.isalpha, sentence)) + sentence.count(" ")
    return bool(_SENTENCE_START.match(body)) and letters >= MIN_LETTERS * len(sentence)
