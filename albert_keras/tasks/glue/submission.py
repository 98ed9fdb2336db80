"""Predictions for the test files of GLUE → the files its leaderboard takes.

Source: the format section of the leaderboard's questions, https://gluebenchmark.com/faq.
"""

import zipfile
from pathlib import Path

import numpy as np

from albert_keras.tasks.glue.glue_tasks import GLUE_TASKS, glue_file, glue_task
from data_pipeline.errors import InputError
from data_pipeline.files import whole_file

HEADER = "index\tprediction"


def write_submission(task, split, examples, predictions, folder) -> Path:
    """Writes the predictions for one test file, under the name that the leaderboard wants.

    Args:
        task: str. A name in `GLUE_TASKS`.
        split: str. A test split: "test", or of mnli "test_matched" or "test_mismatched".
        examples: sequence of TextExample, as `read_glue` gives them.
        predictions: int [count], the numbers of classes; of sts-b float [count], the scores, which
            are clipped to 0 to 5.
        folder: str or Path. Is made if missing.

    Returns:
        Path. The file: a header, then the row of each example in order, by tab: id, prediction.

    Raises:
        InputError: If the split is no test split, if an id is there twice, or if the predictions
            are not one usable one for each example.
    """
    file, settings = glue_file(task, split), glue_task(task)
    if file.submission is None:
        raise InputError(f"`{split}` of {task} should be a test split: it has labels of its own.")
    ids = [example.id for example in examples]
    if len(set(ids)) < len(ids):
        twice = next(id for id in ids if ids.count(id) > 1)
        raise InputError(f"Each id of {task} should be there once. Received: `{twice}` again.")
    predictions = np.asarray(predictions)
    if predictions.shape != (len(ids),):
        raise InputError(
            f"The predictions of {task} should be one for each of {len(ids)} examples. "
            f"Received: {list(predictions.shape)}."
        )
    names = _class_names if settings.labels else _score_names
    path = Path(folder) / file.submission
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = zip(ids, names(task, settings, predictions), strict=True)
    lines = [HEADER, *(f"{id}\t{name}" for id, name in rows)]
    with whole_file(path) as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    return path


def pack_submission(folder, path) -> Path:
    """Packs the eleven files of `write_submission` for uploading.

    Args:
        folder: str or Path. Holds the files of all tasks, as the leaderboard wants them at once.
        path: str or Path. The .zip to appear.

    Raises:
        InputError: If a file is missing, or has not the number of rows the leaderboard expects;
            all such are told.
    """
    folder, path = Path(folder), Path(path)
    files = [file for task in GLUE_TASKS.values() for file in task.files.values()]
    files = [file for file in files if file.submission]
    faults = list(filter(None, (_fault(folder, file) for file in files)))
    if faults:
        raise InputError(f"`{folder}` is no whole submission: {'; '.join(faults)}.")
    with whole_file(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as to:
        for file in files:
            to.write(folder / file.submission, file.submission)
    return path


def _fault(folder, file):
    """Words what is wrong with a file of a submission, or returns None."""
    path = folder / file.submission
    if not path.is_file():
        return f"{file.submission} is missing"
    with open(path, "rb") as lines:
        rows = sum(1 for _ in lines) - 1
    return f"{file.submission} has {rows} rows, not {file.rows}" if rows != file.rows else None


def _class_names(task, settings, predictions):
    count = len(settings.labels)
    is_class = predictions.dtype.kind in "iu" and ((predictions >= 0) & (predictions < count)).all()
    if predictions.size and not is_class:
        raise InputError(
            f"The predictions of {task} should be the numbers of classes, int from 0 to "
            f"{count - 1}. Received: {predictions.dtype}, {predictions.min()} to "
            f"{predictions.max()}."
        )
    return [settings.labels[number] for number in predictions]


def _score_names(task, settings, predictions):
    if not np.isfinite(predictions).all():
        raise InputError(f"The predictions of {task} should be finite. Some are not.")
    return [f"{score:.5f}" for score in np.clip(predictions, *settings.score_range)]
