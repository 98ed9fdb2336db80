"""Markdown out of names, labels and numbers that anybody may have chosen."""

import re
import textwrap

_WIDTH = 100
#: What means something in Markdown on a line; signs that start a list or heading are never first.
_SPECIAL = re.compile(r"[\\`*_\[\]~$@:!#]|(?<=www)\.")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"}
#: What a line of a paragraph may begin with.
_GOES_ON = re.compile(r"(?!\d+[.)])[\w`(\"]")
_PLAIN = re.compile(r"[A-Za-z0-9_.=+-]+")
#: Characters of a name that are shown, and names of a list.
_LONGEST, _MOST = 64, 40


def escaped(text):
    """Writes a text (str) so that it reads as it is, in one line and in a cell of a table."""
    text = " ".join(text.split())
    text = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
    text = text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
    text = "".join(_ENTITIES.get(sign, sign) for sign in _backslashed(text))
    return text


def code(text):
    """Writes a name (str) as code where it is a plain one, as text where not."""
    return f"`{text}`" if len(text) <= _LONGEST and _PLAIN.fullmatch(text) else escaped(text)


def base_name(path):
    """Returns the last part of a path (str): where files lay tells of people, not of a model."""
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1]


def names(texts):
    """Lists names (list of anything; what is no str is left out) in one line, each escaped."""
    texts = [text for text in texts if isinstance(text, str)]
    more = f" and {len(texts) - _MOST:,} more" if len(texts) > _MOST else ""
    return ", ".join(escaped(text) or "(empty)" for text in texts[:_MOST]) + more


def number(value):
    """Writes a number for people: ints with commas, others with four digits; "" of None."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def megabytes(num_bytes):
    """Writes a size in bytes, such as `3.2 MB`."""
    return f"{num_bytes / 1e6:,.1f} MB"


def table(header, rows):
    """Writes a table.

    Args:
        header: sequence of str.
        rows: iterable of sequences of str, as long; all of it escaped already.

    Returns:
        str, "" without any row.
    """
    rows = [header, ["---"] * len(header), *rows]
    if len(rows) == 2:
        return ""
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def facts(pairs):
    """Writes a table of names and values, (str, str) each, without those that are empty."""
    return table(("", ""), [pair for pair in pairs if pair[1]])


def wrapped(text, first=""):
    """Breaks a paragraph (str) into lines; `first` (str) begins it, such as `- `.

    No line but the first begins with `-`, `=`, `1.` or the like, which would be a list or heading.
    """
    lines = []
    options = {"break_long_words": False, "break_on_hyphens": False}
    indent = " " * len(first)
    for line in textwrap.wrap(
        text, _WIDTH, initial_indent=first, subsequent_indent=indent, **options
    ):
        if lines and not _GOES_ON.match(line.lstrip()):
            lines[-1] += f" {line.lstrip()}"
        else:
            lines.append(line)
    return "\n".join(lines)


def bullets(texts):
    """Writes a list of paragraphs (list of str)."""
    return "\n".join(wrapped(text, "- ") for text in texts)


def section(title, *parts):
    """Writes a section of paragraphs, "" if all of them are empty."""
    parts = [part for part in parts if part]
    return "\n\n".join((f"## {title}", *parts)) if parts else ""


def _backslashed(text):
    return _SPECIAL.sub(lambda found: "\\" + found[0], text)
