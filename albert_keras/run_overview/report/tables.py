"""Settings, scores and wrong answers of a run as tables of text."""

import json
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.run_overview.comparison import DEFAULTS
from albert_keras.runs.run_record import flat_values, with_defaults
from albert_keras.tasks.answer_files import ERRORS
from albert_keras.tasks.result_table import rows
from albert_keras.tasks.results import FinetuneResult

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
    """Returns tables of the settings, those with another value than usual first, and of the model.

    `record` is the content of `run.json`.
    """
    usual = DEFAULTS[record.get("kind", "pretraining")]()
    config = flat_values(with_defaults(record, usual)["config"])
    defaults = flat_values(usual)
    differs = {name: defaults.get(name) != value for name, value in config.items()}
    cells = [
        (name, _text(config[name]), _text(defaults.get(name)) if differs[name] else "")
        for name in sorted(config, key=lambda name: not differs[name])
    ]
    shape = [(name, _text(value)) for name, value in record["albert_config"].items()]
    return [
        Table("Settings", ("setting", "value", "default, if another"), cells),
        Table("Shape of the model", ("property", "value"), shape),
    ]


def program_table(record: dict[str, Any]) -> Table:
    """Returns the versions, the commit and the command of a run."""
    cells = [(name, str(version)) for name, version in record.get("versions", {}).items()]
    if record.get("git_commit"):
        cells.append(("commit", record["git_commit"]))
    if record.get("command"):
        cells.append(("command", " ".join(map(str, record["command"]))))
    return Table("Program", ("what", "value"), cells)


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
        cells.append((guess, _percent(scores["unigram_accuracy"]), "", ""))
        for name, baseline in (scores.get("baselines") or {}).items():
            label = f"masked LM, {name}"
            cells.append(_accuracy(label, baseline, "masked_lm_accuracy", "masked_lm_loss"))
    if scores.get("sentence_order_accuracy") is not None:
        names = "sentence_order_accuracy", "sentence_order_loss", "sentence_order_error"
        cells.append(_accuracy("sentence order, this model", scores, *names))
        if complete:
            chance = _percent(scores["sentence_order_chance"])
            cells.append(("sentence order, chance", chance, "", ""))
    count = scores.get("num_records")
    records = f"{count:,} records" if count else "the held-out records of the training"
    title = f"Step {step:,} on {records}"
    header = ("what", "accuracy", "95 % interval", "loss in nats")
    return Table(title, header, cells, numbers=(1, 2, 3))


def result_table(result: FinetuneResult) -> Table:
    """Returns the scores of a fine-tuning next to its baselines."""
    split, *others = (split for split in result.seeds[0].scores)
    cells = [(row.split, row.name, row.score, row.interval, row.difference) for row in rows(result)]
    header = ("split", result.metric, "score", "95 % interval", "lead of this model")
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
            cells = [tuple(map(_shortened, line.split("\t"))) for line in lines[:_ANSWERS]]
            title = f"{min(len(lines), _ANSWERS)} of {len(lines):,} wrong answers of {split}"
            tables.append(Table(title, tuple(header.split("\t")), cells, numbers=(1,)))
    return tables


def _accuracy(name, scores, accuracy, loss, error=None):
    value, margin = scores[accuracy], scores.get(error)
    interval = ""
    if margin is not None:
        interval = f"{_percent(max(value - margin, 0))} to {_percent(min(value + margin, 1))}"
    shown = "" if scores.get(loss) is None else f"{scores[loss]:.3f}"
    return name, _percent(value), interval, shown


def _percent(fraction):
    return f"{100 * fraction:.2f} %"


def _text(value):
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shortened(text):
    return text if len(text) <= _LONGEST_TEXT else f"{text[:_LONGEST_TEXT]} ..."
