"""Scores, wrong answers and settings of a run as tables of text."""

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.report import count_of, percent, shortened
from albert_keras.runs.run_record import flat_values
from albert_keras.tasks.answer_files import ERRORS
from albert_keras.tasks.results import DIFFERENCE, INTERVAL, FinetuneResult, rows

#: The most wrong answers of a split that are shown.
_ANSWERS = 20
_LONGEST_TEXT = 400


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

    Scores that `evaluate` logged have baselines; scores that the training logged have none.
    """
    complete = [(step, found) for step, found in evaluations if "unigram_accuracy" in found]
    if not evaluations:
        return None
    step, scores = complete[-1] if complete else evaluations[-1]
    cells = [_accuracy("masked LM, this model", scores, "masked_lm_accuracy", "masked_lm_loss")]
    if complete:
        guess = f"masked LM, always guessing `{scores['unigram_guess']}`"
        cells.append((guess, percent(scores["unigram_accuracy"], 2), "", ""))
        for name, baseline in (scores.get("baselines") or {}).items():
            label = f"masked LM, {name}"
            cells.append(_accuracy(label, baseline, "masked_lm_accuracy", "masked_lm_loss"))
    if scores.get("sentence_order_accuracy") is not None:
        names = "sentence_order_accuracy", "sentence_order_loss", "sentence_order_error"
        cells.append(_accuracy("sentence order, this model", scores, *names))
        if complete:
            chance = percent(scores["sentence_order_chance"], 2)
            cells.append(("sentence order, chance", chance, "", ""))
    count = scores.get("num_records")
    records = f"{count:,} records" if count else "the held-out records of the training"
    title = f"Step {step:,} on {records}"
    header = ("what", "accuracy", "95 % interval", "loss in nats")
    return Table(title, header, cells, numbers=(1, 2, 3))


def verdict_on(scores: Mapping[str, Any]) -> tuple[bool, str]:
    """Returns whether a masked LM is better than what it was compared with, and a sentence.

    `scores` are the fields of an `Evaluation`, also as a line of a run's log.
    """
    found = {f"always guessing `{scores['unigram_guess']}`": scores["unigram_accuracy"]}
    for name, baseline in (scores.get("baselines") or {}).items():
        found[f"the {name} model"] = baseline["masked_lm_accuracy"]
    name, best = max(found.items(), key=lambda item: item[1])
    own, count = scores["masked_lm_accuracy"], scores["num_predictions"]
    both = f"accuracy {percent(own)} versus {percent(best)} on {count_of(count, 'masked token')}"
    if own > best:
        return True, f"better than {name}: {both}"
    return False, f"not worth using yet: no better than {name}: {both}"


def result_table(result: FinetuneResult | None, scores: dict[str, float]) -> Table | None:
    """Returns the scores of a fine-tuning next to its baselines; if it is not complete, so far."""
    if result is None:
        cells = [(name, f"{value:.4g}") for name, value in scores.items()]
        return Table("Scores so far", ("score", "value"), cells, numbers=(1,)) if cells else None
    split, *others = (split for split in result.seeds[0].scores)
    cells = [(row.split, row.name, row.score, row.interval, row.difference) for row in rows(result)]
    header = ("split", "", result.metric, INTERVAL, DIFFERENCE)
    if not others:
        return Table(f"{result.task}, {split}", header[1:], [row[1:] for row in cells], (1, 2, 3))
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


def _accuracy(name, scores, accuracy, loss, error=None):
    value, margin = scores[accuracy], scores.get(error)
    interval = ""
    if margin is not None:
        interval = f"{percent(max(value - margin, 0), 2)} to {percent(min(value + margin, 1), 2)}"
    shown = "" if scores.get(loss) is None else f"{scores[loss]:.3f}"
    return name, percent(value, 2), interval, shown


def _text(value):
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
