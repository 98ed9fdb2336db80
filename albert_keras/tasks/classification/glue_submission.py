"""Predictions for the test files of GLUE → the files its leaderboard takes.

Source: the format section of the leaderboard's questions, https://gluebenchmark.com/faq.
"""

import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from albert_keras.tasks.classification.glue_tasks import GLUE_TASKS, glue_file, glue_task
from albert_keras.tasks.examples import TextExample
from data_pipeline.errors import InputError
from data_pipeline.files import whole_file

HEADER = "index\tprediction"


def write_submission(
    task: str, split: str, examples: Sequence[TextExample], predictions, folder: str | Path
) -> Path:
    """Writes the predictions for one test file, under the name that the leaderboard requires.

    Args:
        split: A test split: "test", or for mnli "test_matched" or "test_mismatched".
        examples: As returned by `read_glue`.
        predictions: int [count], the numbers of classes; for sts-b float [count], the scores, which
            are clipped to 0 to 5.
        folder: Is created if missing.

    Returns:
        The file: a header, then a row for each example in order: id, tab, prediction.

    Raises:
        InputError: If an id occurs twice.
    """
    file, settings = glue_file(task, split), glue_task(task)
    ids = [example.id for example in examples]
    if len(set(ids)) < len(ids):
        twice = next(id for id in ids if ids.count(id) > 1)
        raise InputError(f"The ids of {task} must be unique. Received: `{twice}` twice.")
    if settings.labels:
        names = [settings.labels[number] for number in predictions]
    else:
        names = [f"{score:.5f}" for score in np.clip(predictions, *settings.score_range)]
    path = Path(folder) / file.submission
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [HEADER, *(f"{id}\t{name}" for id, name in zip(ids, names, strict=True))]
    with whole_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    return path


def pack_submission(folder: str | Path, path: str | Path) -> Path:
    """Packs the eleven files of `write_submission`, which the leaderboard takes together, as .zip.

    Raises:
        InputError: If a file is missing, or does not have the number of rows the leaderboard
            expects; all such files are named.
    """
    folder, path = Path(folder), Path(path)
    files = [file for task in GLUE_TASKS.values() for file in task.files.values()]
    files = [file for file in files if file.submission]
    faults = list(filter(None, (_fault(folder, file) for file in files)))
    if faults:
        raise InputError(f"The submission in `{folder}` is not complete: {'; '.join(faults)}.")
    with whole_file(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as to:
        for file in files:
            to.write(folder / file.submission, file.submission)
    return path


def _fault(folder, file):
    """Returns what is wrong with a file of a submission, or None."""
    path = folder / file.submission
    if not path.is_file():
        return f"{file.submission} is missing"
    with open(path, "rb") as lines:
        rows = sum(1 for _ in lines) - 1
    return f"{file.submission} has {rows} rows, not {file.rows}" if rows != file.rows else None
