"""Removes runs, and nothing else."""

import os
import shutil
from pathlib import Path

from albert_keras.run_overview.summary import RunSummary, summarize
from data_pipeline.errors import InputError
from data_pipeline.files import FolderLock


def check_removable(path: str | Path) -> RunSummary:
    """Returns the summary of a run that may be removed.

    Raises:
        InputError: If the path is not a run, is a link, is a part of a fine-tuning, or is being
            trained.
    """
    path = Path(path)
    if path.is_symlink():
        raise InputError(
            f"`{path}` is a link to `{path.resolve()}`. Remove the link itself with `rm`, or give "
            "the folder."
        )
    summary = summarize(path)
    parent = path.absolute().parent
    if (parent / "results.json").is_file() or path.absolute().name.startswith("seed-"):
        raise InputError(
            f"`{path}` is a part of the fine-tuning `{parent}`, which is incomplete without it. "
            f"Remove `{parent}` as a whole."
        )
    with _lock(path) as lock:
        lock.take()
    return summary


def remove_run(path: str | Path) -> RunSummary:
    """Removes the folder of a run and all that is in it, and returns what it was.

    The folder is renamed first, so that no part of a run is left under its name.

    Raises:
        InputError: As `check_removable`.
    """
    summary, path = check_removable(path), Path(path).absolute()
    renamed = path.with_name(f".{path.name}.removed-{os.getpid()}")
    with _lock(path) as lock:
        lock.take()
        path.rename(renamed)
        shutil.rmtree(renamed)
    return summary


def _lock(path):
    return FolderLock(path, advice="Stop the training first; its folder was not changed.")
