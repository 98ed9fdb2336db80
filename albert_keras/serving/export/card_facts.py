"""Facts for a model card that no program knows: `card.yaml` beside the versions of a model.

    language: en                  # code of the language, for the head of the card
    licence: apache-2.0           # of the weights
    description: >-               # a paragraph: what the model is, and for whom
      ...
    data:                         # what it was trained and tested on
      text: ...
      columns: [Text, Use, Words, Licence]
      rows:
        - [22 English novels, training, 2.9 million, public domain]
    recipe:                       # how anybody can make it
      text: ...
      commands: |                 # for a shell, from the corpus to this card
        albert-keras vocab ...
      curves: curves.png          # a picture in the folder of the card
    results:                      # any number of tables
      - title: Minimal pairs
        text: ...
        columns: [Model, Accuracy]
        rows:
          - [this model, 66.4 %]
    limits:                       # added to those that every card names
      - ...

All keys are optional. Texts are Markdown; the author of the file is the author of the card.
"""

from pathlib import Path

from data_pipeline.errors import InputError
from data_pipeline.limits import NotYaml, parse_yaml, read_limited
from data_pipeline.settings import Rule, Settings, setting

#: Name of the file.
FACTS = "card.yaml"
#: Facts are short; a larger file is something else.
_MAX_BYTES = 1 << 20

_Cell = str | int | float


class CardTable(Settings):
    """A table of a card."""

    rules = (
        Rule(
            ("rows", "columns"),
            lambda rows, columns: all(len(row) == len(columns) for row in rows),
            "must have rows with one cell for each of `columns`",
        ),
    )

    title: str = setting("", "Heading.")
    text: str = setting("", "Paragraph before the table.")
    columns: tuple[str, ...] = setting(..., "Names of the columns.", min_length=1)
    rows: tuple[tuple[_Cell, ...], ...] = setting((), "Cells of each row.")


class CardRecipe(Settings):
    """How a model was made."""

    text: str = setting("", "Paragraph.")
    commands: str = setting("", "Commands for a shell.")
    curves: str | None = setting(None, "Name of a picture in the folder of the card.")


class CardFacts(Settings):
    """Contents of `card.yaml`."""

    language: str | None = setting(None, "Code of the language.", pattern="^[a-z-]{2,12}$")
    licence: str | None = setting(None, "Licence of the weights.", pattern="^[A-Za-z0-9.+-]+$")
    description: str = setting("", "Paragraph.")
    data: CardTable | None = setting(None, "Texts of the training and of the tests.")
    recipe: CardRecipe | None = setting(None, "How the model was made.")
    results: tuple[CardTable, ...] = setting((), "Tables of results.")
    limits: tuple[str, ...] = setting((), "Limits of this model.")


def read_card_facts(out: Path) -> CardFacts:
    """Reads `card.yaml` in the folder of a model; without the file, no fact is known.

    Raises:
        InputError: If it is not YAML with the keys of CardFacts, or its picture does not exist.
    """
    path = out / FACTS
    if not path.is_file():
        return CardFacts()
    try:
        _, values = parse_yaml(read_limited(path, _MAX_BYTES))
    except NotYaml as error:
        raise InputError(f"Line {error.line} of `{path}` {error}", *error.mistakes) from error
    if not isinstance(values, dict):
        raise InputError(f"`{path}` must contain keys and values. Received: {values!r:.60}.")
    try:
        facts = CardFacts(**values)
    except InputError as error:
        raise InputError(f"`{path}`: {error}") from error
    curves = facts.recipe and facts.recipe.curves
    if curves and not (out / curves).is_file():
        raise InputError(
            f"`recipe.curves` in `{path}` must be a file beside it. Received: {curves}."
        )
    return facts
