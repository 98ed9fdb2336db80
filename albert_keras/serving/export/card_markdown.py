"""The values of a model card as Markdown.

Text that anybody may have chosen is escaped, so that it is shown as it is.
"""

import re

#: Characters with a meaning in Markdown, wherever they are in a line.
_SPECIAL = re.compile(r"[\\`*_\[\]~$@:!#]|(?<=www)\.")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"}
_PLAIN = re.compile(r"[A-Za-z0-9_.=+-]+")
#: Characters of a name that are shown, and names of a list.
_MAX_CHARACTERS, _MAX_NAMES = 64, 40


def as_text(text: str) -> str:
    """Escapes text so that it is shown as it is, on one line and in a cell of a table."""
    text = " ".join(text.split())
    text = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
    text = text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"
    text = _SPECIAL.sub(lambda found: "\\" + found[0], text)
    return "".join(_ENTITIES.get(sign, sign) for sign in text)


def as_code(text: str) -> str:
    """Writes a name as code, or escaped if it has unusual characters."""
    is_plain = len(text) <= _MAX_CHARACTERS and _PLAIN.fullmatch(text)
    return f"`{text}`" if is_plain else as_text(text)


def as_cell(value: str | int | float) -> str:
    """Writes a cell of the author's Markdown, or a number, on one line of a table."""
    text = value if isinstance(value, str) else as_number(value)
    return " ".join(text.split()).replace("|", "&#124;")


def as_words(name: str) -> str:
    """Writes the name of a score, such as `masked_lm_loss`, as words."""
    return as_text(name.replace("_", " "))


def as_list(names: list) -> str:
    """Writes the strings of a list on one line, at most 40 of them."""
    names = [name for name in names if isinstance(name, str)]
    more = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(as_text(name) or "(empty)" for name in names[:_MAX_NAMES]) + more


def as_number(value: int | float | None) -> str:
    """Writes an int with commas, another number with four digits, and None as an empty string."""
    if value is None:
        return ""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def as_megabytes(num_bytes: int) -> str:
    """Writes a number of bytes in megabytes, with one decimal."""
    return f"{num_bytes / 1e6:,.1f} MB"


def as_tensor_spec(spec: object) -> str:
    """Writes dtype and shape of a tensor, which are in `export.json` as [dtype, shape]."""
    dtype, shape = spec if isinstance(spec, list) and len(spec) == 2 else (None, None)
    if not isinstance(dtype, str) or not isinstance(shape, list):
        return ""
    sizes = ["…" if size is None else as_text(str(size)) for size in shape]
    if shape and shape[0] is None:
        sizes[0] = "B"
    return f"{as_text(dtype)} [{', '.join(sizes)}]"
