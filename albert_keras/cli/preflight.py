"""Checks of paths that need no TensorFlow, so that a wrong path is reported within a second.

The library makes the same checks where it opens the files.
"""

from pathlib import Path

from albert_keras.formats.foreign_hint import foreign_hint, is_ours
from albert_keras.runs.kind import kind_of_run
from albert_keras.shipped_models import SHIPPED_MODELS, find_model
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError, Mistake


def check_records(*folders: Path | None):
    """Raises InputError unless all of the folders, except None, are folders of records."""
    from data_pipeline.records.record_folder import RecordFiles

    for folder in folders:
        if folder is not None:
            RecordFiles(folder)


def check_source(path: Path):
    """Raises InputError unless there is something that may be a model, in any format."""
    path = find_model(path)
    if not (path.exists() or Path(f"{path}.index").is_file()):
        raise InputError(f"The model `{path}` does not exist, as a file, folder or checkpoint.")
    if path.is_dir() and not any(path.iterdir()):
        raise InputError(
            f"The format of `{path}` is unknown (unpack an archive first). SOURCE must be a model. "
            "Received: an empty folder.",
            Mistake.UNKNOWN_FORMAT,
        )


def check_origin(path: str | None, accepts_random: bool = False):
    """Raises InputError if there is nothing at the path of trained weights.

    Args:
        accepts_random: Whether `random`, for random weights, will do.
    """
    if path is None or (accepts_random and path == "random"):
        return
    problem = "it does not exist"
    if path == "random":
        problem = "this name means random weights"
    elif find_model(path).exists() or any(Path(path).parent.glob(f"{Path(path).name}.*")):
        return  # a pattern because a path may be the prefix of a checkpoint
    raise InputError(
        f"No weights were found at `{path}`: {problem}. It must be the folder of a run, of a "
        f"checkpoint or of an export, the name of a shipped model ({', '.join(SHIPPED_MODELS)}), "
        "the prefix of a TensorFlow checkpoint, or a `.keras` file"
        f"{'; or `random` for random weights' if accepts_random else ''}.",
        Mistake.NO_WEIGHTS,
    )


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
    """Raises InputError unless a folder has the files of a run or of a fine-tuning.

    Args:
        accepts_checkpoints: Whether a TensorFlow checkpoint, such as a converted model, will do.
        accepts_exports: Whether an export will do.
    """
    path = find_model(path)
    if kind_of_run(path) is not None:
        return
    if accepts_checkpoints and (any(path.glob("*.index")) or Path(f"{path}.index").is_file()):
        return
    if accepts_exports and is_ours(path):
        return
    raise InputError(
        f"`{path}` is not the folder of a run or a fine-tuning: it has no run.json and no "
        "results.json. Create one with `albert-keras pretrain` or `finetune`." + foreign_hint(path),
        Mistake.NOT_A_RUN,
    )
