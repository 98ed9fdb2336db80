"""Scores, wrong answers and settings of a run as tables of text."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.report import count_of, percent, shortened
from albert_keras.runs.learned_context import context_verdict
from albert_keras.runs.run_record import flat_values
from albert_keras.tasks.answer_files import ERRORS
from albert_keras.tasks.results import DIFFERENCE, INTERVAL, FinetuneResult, rows

#: The most wrong answers of a split that are shown.
_ANSWERS = 20
_LONGEST_TEXT = 400
#: See `evaluation_rows`.
EVALUATION_HEADER = ("", "accuracy", "95 % interval", "loss in nats")


class Table(NamedTuple):
    """A table; all cells are plain text."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]
    numbers: tuple[int, ...] = ()  # the columns that are aligned to the right


def settings_tables(record: dict[str, Any]) -> list[Table]:
    """Returns what `run.json` says as tables: settings, shape of the model, data, program."""
    program = {name: record.get(name) for name in ("versions", "git_commit")}
    if record.get("command"):
        program["command"] = shlex.join(map(str, record["command"]))
    parts = {
        "Settings": record["config"],
        "Shape of the model": record["albert_config"],
        "Data": record["data"],
        "Program": program,
    }
    return [
        Table(title, ("name", "value"), [(name, _text(x)) for name, x in flat_values(part).items()])
        for title, part in parts.items()
    ]


def evaluation_table(evaluations: list[tuple[int, dict[str, Any]]]) -> Table | None:
    """Returns the newest scores of a pre-training next to guessing; None if there are none.

    Scores at the end of the training and of `evaluate` have baselines; the others have none.
    """
    if not evaluations:
        return None
    complete = [(step, scores) for step, scores in evaluations if "unigram_accuracy" in scores]
    step, scores = (complete or evaluations)[-1]
    count = scores.get("num_records")
    records = count_of(count, "record") if count else "the held-out records of the training"
    title = f"Step {step:,} on {records}"
    if complete:
        title += f": {context_verdict(scores)[1]}"
    return Table(title, EVALUATION_HEADER, evaluation_rows(scores), numbers=(1, 2, 3))


def evaluation_rows(scores: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Returns the rows below `EVALUATION_HEADER`: scores of a pre-trained model, and of guessing.

    `scores` are the fields of an `Evaluation`, also as a line of a run's log.
    """
    own = percent(scores["masked_lm_accuracy"], 2), "", f"{scores['masked_lm_loss']:.3f}"
    cells = [("masked LM, this model", *own)]
    if "unigram_accuracy" in scores:
        guess = f"masked LM, always guessing `{scores['unigram_guess']}`"
        cells.append((guess, percent(scores["unigram_accuracy"], 2), "", ""))
    for name, found in (scores.get("baselines") or {}).items():
        accuracy = percent(found["masked_lm_accuracy"], 2)
        cells.append((f"masked LM, {name}", accuracy, "", f"{found['masked_lm_loss']:.3f}"))
    accuracy = scores.get("sentence_order_accuracy")
    if accuracy is not None:
        interval = ""
        if error := scores.get("sentence_order_error"):
            low, high = max(accuracy - error, 0), min(accuracy + error, 1)
            interval = f"{percent(low, 2)} to {percent(high, 2)}"
        loss = f"{scores['sentence_order_loss']:.3f}"
        cells.append(("sentence order, this model", percent(accuracy, 2), interval, loss))
    chance = scores.get("sentence_order_chance")
    if chance is not None:
        cells.append(("sentence order, chance", percent(chance, 2), "", ""))
    return cells


def result_table(result: FinetuneResult) -> Table:
    """Returns the scores of a fine-tuning next to its baselines."""
    cells = [(row.split, row.name, row.score, row.interval, row.difference) for row in rows(result)]
    header = ("split", "", result.metric, INTERVAL, DIFFERENCE)
    return Table(result.task, header, cells, numbers=(2, 3, 4))


def wrong_answers(folder: Path, result: FinetuneResult) -> list[Table]:
    """Returns the wrong answers of each split in which the model was most confident."""
    tables = []
    for number, split in enumerate(result.files):
        path = (folder / split if number else folder) / ERRORS
        if path.is_file():
            header, *lines = path.read_text(encoding="utf-8").split("\n")[:-1]
            cells = [
                tuple(shortened(cell, _LONGEST_TEXT) for cell in line.split("\t"))
                for line in lines[:_ANSWERS]
            ]
            title = f"{min(len(lines), _ANSWERS)} of {len(lines):,} wrong answers of {split}"
            tables.append(Table(title, tuple(header.split("\t")), cells, numbers=(1,)))
    return tables


def _text(value):
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
