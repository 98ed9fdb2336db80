"""What a file is, by its first bytes, for all readers: the table `file_kinds.yaml`, and encodings.

A reader says which kinds it takes. Each other kind is an error that names it, with the command that
helps. Bytes that no kind begins with are left to the reader.
"""

import functools
import importlib.resources
import os
import re
import shlex

import yaml

from data_pipeline.errors import InputError, Mistake

#: First bytes of a file that are looked at.
HEAD_BYTES = 4096
#: Names of kinds: texts in other encodings than UTF-8, and HTML, which is text as well.
WIDE, HTML = ("UTF-32", "UTF-16"), "HTML"

#: Bytes in which zeros reveal UTF-16 without a byte order mark, as every Latin letter, digit and
#: line break has one, and the least share of zeros in that half of the characters' bytes.
_SAMPLE_BYTES, _SOME_ZEROS = 1 << 16, 0.01
#: Text of Western Europe has at most this share of accented letters among its letters.
_MOST_ACCENTED = 0.25
ESCAPED = re.compile("[\udc80-\udcff]")  # bytes that `surrogateescape` could not decode


@functools.cache
def _kinds():
    table = importlib.resources.files("data_pipeline").joinpath("file_kinds.yaml")
    kinds = yaml.safe_load(table.read_text(encoding="utf-8"))
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


def detect_encoding(data: bytes) -> str:
    """Detects the encoding of a text: by its byte order mark, as UTF-16 or UTF-8, or Windows-1252.

    Windows-1252, which includes Latin-1, is guessed only for text that has neither valid UTF-8
    sequences nor more accented letters than the languages of Western Europe. All other bytes are
    called UTF-8, so that what is broken is reported.
    """
    kind = kind_of(data[:HEAD_BYTES])
    if kind in WIDE:
        return kind.lower()
    sample = data[:_SAMPLE_BYTES]
    even, odd = (sample[start::2].count(0) for start in (0, 1))
    if max(even, odd) > max(_SOME_ZEROS * len(sample) / 2, 2 * min(even, odd)):
        name = "utf-16-le" if odd > even else "utf-16-be"
        if _suits(data, name):
            return name
    if _suits(data, "utf-8"):
        return "utf-8"
    text = data.decode("utf-8", "surrogateescape")
    broken = len(ESCAPED.findall(text))
    valid = sum(not letter.isascii() for letter in text) - broken
    letters = sum(letter.isascii() and letter.isalpha() for letter in text) + broken
    is_western = 10 * valid <= broken <= _MOST_ACCENTED * letters
    return "windows-1252" if is_western and _suits(data, "windows-1252") else "utf-8"


def _suits(data, encoding):
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
