"""What a file is, by its first bytes, for all readers: the table `file_kinds.json`.

A reader says which kinds it takes. Each other kind is an error that names it, with the command that
helps. Bytes that no kind begins with are left to the reader.

A kind of the table has a `name`, as a reader that takes it calls it; `start`, a regular expression
of the first bytes, of which the first that fits counts; `what` completes "it is ..."; and `advice`
says what to do, where {path} is the file and {folder} its folder, both quoted for a shell.
"""

import functools
import importlib.resources
import json
import os
import re
import shlex

from data_pipeline.errors import InputError, Mistake

#: First bytes of a file that are looked at.
HEAD_BYTES = 4096
#: Names of kinds: texts in other encodings than UTF-8, and HTML, which is text as well.
WIDE, HTML = ("UTF-32", "UTF-16"), "HTML"


@functools.cache
def _kinds():
    table = importlib.resources.files("data_pipeline").joinpath("file_kinds.json")
    kinds = json.loads(table.read_text(encoding="utf-8"))
    return [(re.compile(kind["start"].encode("latin-1"), re.DOTALL), kind) for kind in kinds]


def kind_of(head: bytes) -> str | None:
    """Returns the name of the kind that begins with these bytes, `HEAD_BYTES` of it; or None."""
    return next((kind["name"] for start, kind in _kinds() if start.match(head)), None)


def check_kind(path: object, head: bytes, takes: tuple[str, ...] | None) -> None:
    """Raises InputError for a file of a kind that its reader does not take, by its first bytes.

    `takes` are the names of kinds; None takes all but pointers, which stand for another file.
    """
    name = kind_of(head)
    if name is not None and (name == "pointer" if takes is None else name not in takes):
        raise kind_error(path, name)


def kind_error(path: object, name: str) -> InputError:
    """Returns the error for a file of a kind, with the command that helps."""
    kind = next(kind for _, kind in _kinds() if kind["name"] == name)
    folder = shlex.quote(os.path.dirname(str(path)) or ".")
    advice = kind["advice"].replace("{path}", shlex.quote(str(path))).replace("{folder}", folder)
    problem = f"`{path}` cannot be read: it is {kind['what']}."
    return InputError(f"{problem} {advice}", Mistake.NOT_TEXT)
