"""Commands and options of earlier versions: each answers with what replaces it, exit code 2.

`removed.txt` lists them as they were typed after `albert-keras`, each with a sentence that names
its replacement. An option follows its command; `|` separates several options of one command, and
one of the values of an option follows it, as in `finetune --objective unsupervised`.
"""

import functools
import re
from pathlib import Path

from data_pipeline.errors import InputError


@functools.cache
def removed() -> dict[str, str]:
    """Returns the replacements by removed command or option."""
    found = {}
    listing = (Path(__file__).parent / "removed.txt").read_text(encoding="utf-8")
    for line in listing.strip().replace("\n  ", " ").splitlines():
        names, _, text = line.partition(": ")
        for words in names.split(", "):
            command, *options = re.split(r" (?=--)|\|", words)
            found |= dict.fromkeys([f"{command} {option}" for option in options] or [command], text)
    return found


def refuse_removed(path: str, *words: str) -> None:
    """Raises InputError if the words after the commands `path` were removed."""
    old = " ".join([*path.split()[1:], *words])
    if old in removed():
        raise InputError(f"`albert-keras {old}` was removed. {removed()[old]}")


def check_options(path: str, words: list[str]) -> None:
    """Raises InputError if the words after the commands `path` have an option that was removed.

    A value of an option may have been removed as well, as `--name value` or `--name=value`.
    """
    flat = [part for word in words for part in word.split("=", 1)]
    for position, word in enumerate(flat):
        if word.startswith("-"):
            refuse_removed(path, word)
            refuse_removed(path, *flat[position : position + 2])
