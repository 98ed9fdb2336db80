"""The model card of an exported model: `README.md` in the folder of its version.

The wording is in `model_card.md.jinja`, the facts are those of `export.json`. A record has names
that anybody may have chosen: all that the template prints is escaped, unless it is `Markdown`.
"""

import functools
import json
import re
from pathlib import Path
from typing import Any

import jinja2

from albert_keras.config import AlbertConfig
from albert_keras.report import number_text
from albert_keras.runs.trained_data import RECORDS, ROWS, Overlap
from albert_keras.shape import model_line
from albert_keras.tasks.kinds import task_class

#: Name of the file in the folder of a version.
CARD = "README.md"
#: Characters with a meaning in Markdown, wherever they are in a line.
_SPECIAL = re.compile(r"[\\`*_\[\]~$@:!#]|(?<=www)\.")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"}


def model_card(name: str, record: dict[str, Any]) -> str:
    """Builds the card of a version of a model in Markdown.

    Only the last part of each path is shown, and never the command line. The same record results
    in the same card.

    Args:
        name: Of the model.
        record: Contents of `export.json`.
    """
    task = record.get("task")
    task_type = task and task_class(task["kind"])
    config = AlbertConfig.from_dict(record["run"]["albert_config"])
    card = _template().render(
        name=Markdown(name),
        line=model_line(config, record["num_parameters"]),
        r=record,
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
