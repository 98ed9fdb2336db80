"""`albert-keras explain`."""

import re
from pathlib import Path
from typing import NamedTuple

from albert_keras.cli.command import Output, command
from albert_keras.cli.options import argument
from data_pipeline.errors import DOCUMENT, InputError, Mistake
from data_pipeline.settings import did_you_mean

_PACKAGE = Path(__file__).parents[1]
#: Where the document is: a wheel has a copy inside the package, see `wheel.py`.
_PLACES = (_PACKAGE / DOCUMENT, _PACKAGE.parent / DOCUMENT)
_NUMBERS = [mistake.value for mistake in Mistake]


class Explanation(NamedTuple):
    """What the documentation says about a mistake.

    Attributes:
        number: str. "AK105", for example.
        title: str. The mistake in a phrase.
        text: str. Its cause and how to fix it, in Markdown.
    """

    number: str
    title: str
    text: str


def explanations() -> list[Explanation]:
    """Reads the explanations of all mistakes, in the order of their numbers."""
    document = next(path for path in _PLACES if path.is_file()).read_text(encoding="utf-8")
    sections = re.findall(r"^### (AK\d+) (.+)\n\n((?:(?!#).*\n?)+)", document, re.M)
    return [Explanation(number, title, text.strip()) for number, title, text in sections]


@command()
def explain(
    numbers: list[str] = argument([], "Numbers at the end of an error message.", metavar="AK..."),
):
    """Explain errors by their numbers: the usual cause, and how to fix it.

    Without a number, all of them are listed with their titles.

    \b
    Example:
      albert-keras explain AK105
    """
    wanted = [number.upper() for number in numbers]
    for number in wanted:
        if number not in _NUMBERS:
            raise InputError(
                "An error must be given by the number at the end of its message, such as AK105. "
                f"Received: {number}{did_you_mean(number, _NUMBERS)}"
            )
    found = [one for one in explanations() if not wanted or one.number in wanted]
    return Output([one._asdict() for one in found], _lines(found, with_texts=bool(wanted)))


def _lines(found, with_texts):
    for position, (number, title, text) in enumerate(found):
        if with_texts and position:
            yield ""
        yield f"{number} {title}"
        if with_texts:
            yield text.replace("**", "")
