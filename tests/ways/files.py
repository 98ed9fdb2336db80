"""Files of the examples of each kind, as `finetune` reads them."""

import json
from pathlib import Path
from typing import Any

from tests.ways.kinds import Kind


def write_examples(path: Path, kind: Kind, inputs: list[dict[str, Any]], labels: list) -> str:
    """Writes inputs with their labels, in their order; returns the path of the file."""
    write = {"squad2": _write_squad, "race": _write_race}.get(kind.task["name"], _write_objects)
    return str(write(path, inputs, labels))


def can_be_read(kind: Kind, input_: dict[str, Any]) -> bool:
    """Returns whether a file may have an input: a row of a table must have a text."""
    return kind.task["name"] in ("squad2", "race") or "words" in input_ or input_["text"].strip()


def _write_objects(path, inputs, labels):
    rows = [
        one | {"tags" if "words" in one else "label": label}
        for one, label in zip(inputs, labels, strict=True)
    ]
    path = path.with_suffix(".jsonl")
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def _write_race(path, inputs, labels):
    rows = [
        {"article": one["context"], "questions": [one["question"]], "options": [one["options"]]}
        | {"answers": ["ABCD"[label]]}
        for one, label in zip(inputs, labels, strict=True)
    ]
    path = path.with_suffix(".txt")
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def _write_squad(path, inputs, labels):
    paragraphs = []
    for at, (one, label) in enumerate(zip(inputs, labels, strict=True)):
        answers = [{"text": label, "answer_start": one["context"].find(label)}] if label else []
        question = {"id": str(at), "question": one["question"], "answers": answers}
        question["is_impossible"] = not answers
        paragraphs.append({"context": one["context"], "qas": [question]})
    path = path.with_suffix(".json")
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    return path
