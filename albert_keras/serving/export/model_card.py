"""The model card of an exported model: `README.md` beside its versions.

The wording is in `model_card.md.jinja`. Facts come from the `export.json` of the newest version;
what no program knows comes from the author's `card.yaml`, see `CardFacts`. A record has names that
anybody may have chosen: all that the template prints is escaped, unless it is `Markdown`.
"""

import functools
import json
import re
from pathlib import Path

import jinja2

from albert_keras.config import AlbertConfig
from albert_keras.formats.detection import keras_file, read_export_record, versions
from albert_keras.report import number_text
from albert_keras.runs.trained_data import RECORDS, ROWS, Overlap
from albert_keras.serving.layout import check_model_name
from albert_keras.shape import model_line
from albert_keras.shipped_models import SHIPPED_MODELS
from albert_keras.tasks.kinds import task_class
from data_pipeline.errors import InputError
from data_pipeline.files import whole_file
from data_pipeline.limits import read_yaml
from data_pipeline.settings import Settings, setting

#: Name of the file with the author's facts.
FACTS = "card.yaml"
CARD = "README.md"
#: Characters with a meaning in Markdown, wherever they are in a line.
_SPECIAL = re.compile(r"[\\`*_\[\]~$@:!#]|(?<=www)\.")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"}


class CardFacts(Settings):
    """Facts that no program knows, contents of `card.yaml`; texts are Markdown of the author."""

    language: str | None = setting(None, "Code of the language.", pattern="^[a-z-]{2,12}$")
    licence: str | None = setting(None, "Licence of the weights.", pattern="^[A-Za-z0-9.+-]+$")
    description: str = setting("", "What the model is, and for whom.")
    sections: dict[str, str] = setting({}, "Title -> text, such as of data, a recipe or results.")
    limits: tuple[str, ...] = setting((), "Limits of this model, added to those of all models.")


def read_card_facts(out: Path) -> CardFacts:
    """Reads `card.yaml` in the folder of a model; without the file, no fact is known.

    Raises:
        InputError: If it is not YAML with the keys of CardFacts.
    """
    path = out / FACTS
    if not path.is_file():
        return CardFacts()
    values = read_yaml(path)
    try:
        return CardFacts(**values)
    except InputError as error:
        raise InputError(f"`{path}`: {error}") from error


def write_model_card(out: Path) -> None:
    """Writes the card of a model, `README.md`, and replaces an older one."""
    with whole_file(out / CARD) as temporary:
        temporary.write_text(model_card(out), encoding="utf-8")


def model_card(out: Path) -> str:
    """Builds the card of a model in Markdown, which is about its newest version.

    Only the last part of each path is shown, and never the command line. The same files result in
    the same card.

    Raises:
        InputError: If a record is damaged.
    """
    name = check_model_name(out.absolute().name)
    version = out / str(versions(out)[-1])
    record, model_file = read_export_record(version), keras_file(version)
    if not record:
        raise InputError(
            f"`{version}` must be a version that `export` wrote, with its export.json."
        )
    task = record.get("task")
    task_type = task and task_class(task["kind"])
    config = AlbertConfig.from_dict(record["run"]["albert_config"])
    card = _template().render(
        name=Markdown(name),
        is_shipped=name in SHIPPED_MODELS,
        facts=read_card_facts(out),
        line=model_line(config, record["num_parameters"]),
        r=record,
        keras_file=Markdown(model_file.name) if model_file.is_file() else None,
        overlap=_overlap(record),
        task_type=task_type,
        example=task and json.dumps(_example(task_type, task["takes_pair"])),
    )
    return re.sub(r"\n{3,}", "\n\n", card).strip() + "\n"


def _example(task_type, takes_pair):
    """Returns an example with dots for the texts of a task."""
    names = ("text", "pair") if takes_pair else task_type.inputs
    return {name: ["...", "..."] if name == "options" else "..." for name in names}


def _overlap(record):
    if record.get("kind") == "pretraining":
        counts, what = record["scores"].get("overlap"), RECORDS
    else:
        splits = record["run"].get("data", {}).get("overlap") or {}
        counts, what = next(iter(splits.values()), None), ROWS
    overlap = Overlap.of(counts)
    if overlap is None:
        return None
    return overlap.sentence(what) if overlap.normalised else ""


@functools.cache
def _template():
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.ChainableUndefined,  # an older record lacks some facts
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=shown,
    )
    environment.filters |= {
        "file_name": file_name,
        "markdown": Markdown,
        "number": as_number,
    }
    return environment.get_template("model_card.md.jinja")


class Markdown(str):
    """Text that is not escaped."""


def shown(value: object) -> str:
    """Returns what the card shows of a value: nothing of None, a number with four digits."""
    if value is None or isinstance(value, Markdown | jinja2.Undefined):
        return value or ""
    return as_text(as_number(value))


def as_number(value: object) -> str:
    """Writes a number with four significant digits, and anything else as it is."""
    return number_text(value, digits=4) if isinstance(value, int | float) else str(value or "")


def as_text(text: str) -> str:
    """Escapes text so that it is shown as it is, on one line and in a cell of a table."""
    text = re.sub(r"\s+", " ", text)
    text = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
    text = _SPECIAL.sub(lambda found: "\\" + found[0], text)
    return "".join(_ENTITIES.get(sign, sign) for sign in text)


def file_name(path: object) -> str:
    """Returns the last part of a path: the rest says where and by whom a model was made."""
    return re.split(r"[/\\]", str(path or "").rstrip("/\\"))[-1]
