"""Checks of paths that need no TensorFlow, so that a wrong path is reported within a second.

The library makes the same checks where it opens the files.
"""

from pathlib import Path

from albert_keras.formats.detection import ANY_MODEL, KINDS, detect
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError, Mistake


def check_records(*folders: Path | None):
    """Raises InputError unless all of the folders, except None, are folders of records."""
    from data_pipeline.records.record_folder import RecordFiles

    for folder in folders:
        if folder is not None:
            RecordFiles(folder)


def check_origin(path: str | None, accepts_random: bool = False):
    """Raises InputError unless there is a trained model at a path.

    Args:
        path: None is no error.
        accepts_random: Whether `random`, for random weights, will do.
    """
    if path is None or (accepts_random and path == "random"):
        return
    if path == "random":
        raise InputError(
            "A trained model must be given. Received: `random`, which means random weights.",
            Mistake.NO_WEIGHTS,
        )
    is_optional = " `random` stands for random weights." if accepts_random else ""
    detect(path, wanted=ANY_MODEL + is_optional)


def check_task_files(task: TaskConfig):
    """Raises InputError if a file or folder of a task does not exist."""
    check_files(task.train, task.dev)
    if task.data_dir is not None and not Path(task.data_dir).is_dir():
        raise InputError(
            f"`{task.data_dir}` does not exist or is not a folder. `data_dir` must be the folder "
            f"with the official files of {task.name}."
        )


def check_files(*paths: str | Path | None):
    """Raises InputError if one of the paths, except None, does not exist or cannot be read."""
    from data_pipeline.text import storage

    for path in paths:
        if path is not None and not storage.is_folder(path):
            storage.open_to_read(path).close()


def check_model_folder(
    path: Path, accepts_checkpoints: bool = False, accepts_exports: bool = False
):
    """Raises InputError unless there is a run or a fine-tuning at a path.

    Args:
        accepts_checkpoints: Whether weights without a run, in any format, will do.
        accepts_exports: Whether an export will do.
    """
    kinds = ["run", "fine-tuning", *(["export"] if accepts_exports else [])]
    wanted = "It must be the folder of a run or a fine-tuning"
    wanted += ", or an export." if accepts_exports else "."
    wanted += " Create one with `albert-keras pretrain` or `finetune`."
    if accepts_checkpoints:
        kinds, wanted = list(KINDS), ""
    detect(path, kinds, wanted)
