"""The model card of an exported model: `README.md` beside its versions.

The wording is in `model_card.md.jinja`. Facts come from the `export.json` of each version; what no
program knows comes from the author's `card.yaml`, see `CardFacts`. A record has names that anybody
may have chosen: all that the template prints is escaped, unless it is `Markdown`.
"""

import functools
import json
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from albert_keras.config import AlbertConfig
from albert_keras.formats.detection import keras_file, read_export_record, versions
from albert_keras.report import bytes_text, number_text
from albert_keras.runs.trained_data import RECORDS, ROWS, Overlap
from albert_keras.serving.layout import check_model_name, size_of
from albert_keras.serving.sample_texts import sample_texts
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


def check_card(out: Path) -> None:
    """Raises InputError if `card.yaml` is wrong, or a version has no record or a damaged one."""
    read_card_facts(out)
    for number in versions(out):
        _record_of(out / str(number))


def write_model_card(out: Path) -> None:
    """Writes the card of a model, `README.md`, and replaces an older one."""
    with whole_file(out / CARD) as temporary:
        temporary.write_text(model_card(out), encoding="utf-8")


class CardVersion(NamedTuple):
    """A version on the card."""

    name: str  # of its folder, a number
    record: dict[str, Any]  # `export.json`
    num_bytes: int  # of its folder
    keras_file: str | None
    overlap: str  # how many of the scored rows were trained on, "" if none; None if unknown
    line: str  # what the model is


def model_card(out: Path) -> str:
    """Builds the card of a model in Markdown: its newest version, and a table of all versions.

    Only the last part of each path is shown, and never the command line. The same files result in
    the same card.

    Raises:
        InputError: If a record is damaged.
    """
    name = check_model_name(out.absolute().name)
    described = [_version(out / str(number)) for number in reversed(versions(out))]
    newest = described[0]
    samples = sample_texts(out / newest.name)
    task = newest.record.get("task")
    task_type = task and task_class(task["kind"])
    example = samples.example(task_type, bool(task and task.get("takes_pair")))
    card = _template().render(
        name=Markdown(name),
        is_shipped=name in SHIPPED_MODELS,
        facts=read_card_facts(out),
        v=newest,
        r=newest.record,
        versions=described,
        task_type=task_type,
        example={field: Markdown(_as_json(text)) for field, text in example.items()},
        masked=Markdown(_as_json(samples.masked)),
        masked_argument=Markdown(shlex.quote(samples.masked)),
    )
    return re.sub(r"\n{3,}", "\n\n", card).strip() + "\n"


def _version(folder):
    record, file = _record_of(folder), keras_file(folder)
    config = AlbertConfig.from_dict(record["run"]["albert_config"])
    return CardVersion(
        name=Markdown(folder.name),
        record=record,
        num_bytes=size_of(folder),
        keras_file=Markdown(file.name) if file.is_file() else None,
        overlap=_overlap(record),
        line=model_line(config, record["num_parameters"]),
    )


def _record_of(folder):
    """Reads `export.json`, which the card is about; InputError if a version has none."""
    record = read_export_record(folder)
    if not record:
        raise InputError(f"`{folder}` must be a version that `export` wrote, with its export.json.")
    return record


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
        "bytes": bytes_text,
        "code": as_code,
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


def as_code(text: object) -> str:
    """Writes a digest or a name as code, or escaped if it has unusual characters."""
    if not text:
        return ""
    is_plain = re.fullmatch(r"[A-Za-z0-9_.=+-]+", str(text))
    return Markdown(f"`{text}`") if is_plain else str(text)


def file_name(path: object) -> str:
    """Returns the last part of a path: the rest says where and by whom a model was made."""
    return re.split(r"[/\\]", str(path or "").rstrip("/\\"))[-1]


def _as_json(value):
    return json.dumps(value, ensure_ascii=False)
