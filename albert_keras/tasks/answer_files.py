"""Files about answers to labelled examples: the answers, the wrong ones, and a figure."""

import os
from collections.abc import Iterable
from pathlib import Path

from albert_keras.tasks.confusion_figure import draw_confusion, draw_scores
from albert_keras.tasks.kinds import REGRESSION
from albert_keras.tasks.predictions import one_line
from albert_keras.tasks.task import Error, Task
from data_pipeline.files import naming, whole_file

#: Name of the file of wrong answers.
ERRORS = "errors.tsv"
_HEADER = ("id", "confidence", "truth", "answer", "text")


def write_answers(
    folder: str | os.PathLike, task: Task, split: str, examples: list, answers: list
) -> dict:
    """Writes answers in the task's files, a table of the wrong ones, and a figure.

    Args:
        folder: Is created if missing; older files of these names are replaced.
        examples: Labelled.

    Returns:
        dict of str to str or list of str. Paths: "answers", "errors", and "confusions" or "scores"
        if the task has such a figure.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    value = task.scores(examples, answers)[task.metric]
    title = f"{task.config.name}, {split}: {task.metric} {value:.4g}"
    files = {
        "answers": [str(path) for path in task.write(folder, split, examples, answers)],
        "errors": str(write_errors(folder / ERRORS, task.errors(examples, answers))),
    }
    confusion = task.confusion(examples, answers)
    if confusion is not None:
        files["confusions"] = str(draw_confusion(folder / "confusion.png", *confusion, title))
    if task.kind is REGRESSION:
        truth = [example.label for example in examples]
        scores = [answer.score for answer in answers]
        files["scores"] = str(draw_scores(folder / "scores.png", truth, scores, title))
    return files


def write_errors(path: str | Path, errors: Iterable[Error]) -> Path:
    """Writes wrong answers, in their order, as tab-separated values under a header.

    Columns are `id`, `confidence`, `truth`, `answer` and `text`. Nothing is quoted; white space
    inside a cell becomes a single space. An older file is replaced.
    """
    path = Path(path)
    rows = [_HEADER, *map(_cells, errors)]
    text = "".join("\t".join(row) + "\n" for row in rows)
    with naming(path), whole_file(path) as temporary:
        # Halves of surrogate pairs, which JSON allows, have no UTF-8.
        temporary.write_bytes(text.encode("utf-8", errors="backslashreplace"))
    return path


def _cells(error):
    values = (error.id, f"{error.confidence:.6g}", error.truth, error.answer, error.text)
    return [one_line(value) for value in values]
