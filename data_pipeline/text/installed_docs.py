"""The default corpus: English prose found on every machine that can run this project.

The documentation of Python and of the installed packages, read from their sources with `ast`
(nothing is imported but the help texts of the standard library) and cleaned of code and markup.
Gives documents as `corpus.py` does, for a first training without a download.
"""

import ast
import importlib.util
import inspect
import logging
import os
import re
import sysconfig
import warnings
from collections.abc import Iterator
from pathlib import Path
from pydoc_data.topics import topics as HELP_TOPICS

from data_pipeline.errors import InputError
from data_pipeline.text.corpus import Document
from data_pipeline.text.docstrings import prose_blocks, prose_sentences

logger = logging.getLogger(__name__)

#: Import names of the packages read, those absent left out; "python" is the standard library.
PACKAGES = tuple(
    "PIL absl attr click dateutil google grpc h5py keras keras_nlp markdown markdown_it "
    "matplotlib numpy oauthlib opt_einsum packaging pip pkg_resources pydantic pyparsing "
    "python requests rich setuptools tensorboard tensorflow tensorflow_addons "
    "tensorflow_estimator tensorflow_hub tensorflow_text tqdm typer urllib3 werkzeug wheel "
    "yaml".split()
)

MIN_SENTENCES = 3  # of a document

# Tests, copies of other packages, and folders with megabytes of code or tables but no prose.
_SKIPPED_FOLDERS = {"__pycache__", "idlelib", "lib2to3", "site-packages", "test", "tests"}
_SKIPPED_FOLDERS |= {"_api", "_distutils", "_vendor", "encodings", "pydoc_data"}
_DEFINITIONS = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

_SKIPPED_FILE = re.compile(r"_pb2|(^|_)test(ing)?[_.]")


def installed_documentation(packages=None) -> Iterator[Document]:
    """Yields the documentation of installed packages as prose, as an API reference has its pages.

    A class, with its methods, or a function of a module is a document; what is too short for one
    goes into the module's own.

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
    """Lists (title, docstrings) of a module, title "", and of its classes and functions."""
    source = path.read_bytes()
    if b'"""' not in source and b"'''" not in source:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's strings
            tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        # A template, or a test for another Python: no documentation.
        logger.debug("`%s` is left out, it is no Python here: %s", path, error)
        return []
    own = ast.get_docstring(tree, clean=False)
    pages = [("", [own] if own else [])]
    return pages + [(node.name, list(_docstrings(node))) for node in _definitions_in(tree)]


def _docstrings(node):
    """Yields the docstrings of a class or function and of all inside, in order of appearance."""
    docstring = ast.get_docstring(node, clean=False)
    if docstring:
        yield docstring
    for inner in _definitions_in(node):
        yield from _docstrings(inner)


def _definitions_in(node):
    # Definitions may stand under `if` or `try`, one level deep as a rule.
    bodies = [node.body, *(item.body for item in node.body if isinstance(item, (ast.If, ast.Try)))]
    found = [item for body in bodies for item in body if isinstance(item, _DEFINITIONS)]
    return sorted(found, key=lambda item: item.lineno)


def _documents(name, pages, seen):
    """Yields the pages of a module that say enough, then what the others say together."""
    rest, rest_count = [], 0
    for title, docstrings in pages:
        paragraphs, count = _new_prose(docstrings, seen)
        if title and count >= MIN_SENTENCES:
            yield Document(f"{name}:{title}", tuple(paragraphs))
        else:
            rest += paragraphs
            rest_count += count
    if rest_count >= MIN_SENTENCES:
        yield Document(name, tuple(rest))


def _new_prose(docstrings, seen):
    """Returns the paragraphs that were not seen before, and how many sentences they have."""
    paragraphs, count = [], 0
    for docstring in docstrings:
        whole = (docstring,)  # told apart from a paragraph of the same words
        if whole in seen:  # a shortcut: its paragraphs are there too
            continue
        seen.add(whole)
        for text in prose_blocks(inspect.cleandoc(docstring)):
            kept, total = prose_sentences(text)
            paragraph = " ".join(kept)
            # A paragraph that is half code does not read on without that half.
            if 2 * len(kept) > total and paragraph not in seen:
                seen.add(paragraph)
                paragraphs.append(paragraph)
                count += len(kept)
    return paragraphs, count
