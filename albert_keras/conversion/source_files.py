"""The files a model was read from, and what they are."""

from pathlib import Path

from albert_keras.finetuning.finetuned import find_runs, is_finetuned
from albert_keras.runs.run import Run
from data_pipeline.files import sha256_of

_RECORD = "run.json"


def files_of(path):
    """Hashes the files of a model.

    Of a run they are those of the checkpoint that is read, and its `run.json`; of a folder all
    that are not hidden; of the prefix of a checkpoint its own.

    Args:
        path: Path.

    Returns:
        dict of str. File, below the folder -> SHA-256, in hexadecimal.
    """
    if path.is_file():
        return {path.name: sha256_of(path)}
    if not path.is_dir():
        files = sorted(path.parent.glob(f"{path.name}.*"))
        return {file.name: sha256_of(file) for file in files if file.is_file()}
    if is_finetuned(path):
        (path,) = find_runs(path)
        return _of_run(path, "best")
    if (path / _RECORD).is_file():
        return _of_run(path, None)
    files = sorted(file for file in path.rglob("*") if file.is_file())
    below = {file.relative_to(path): file for file in files}
    shown = {name: file for name, file in below.items() if not _is_hidden(name)}
    return {name.as_posix(): sha256_of(file) for name, file in shown.items()}


def _of_run(path, step):
    checkpoints = Run.open(path).checkpoints
    folder = Path(checkpoints.prefix(checkpoints.choose(step))).parent
    files = [path / _RECORD, *sorted(file for file in folder.iterdir() if file.is_file())]
    return {file.relative_to(path).as_posix(): sha256_of(file) for file in files}


def _is_hidden(name):
    return any(part.startswith(".") for part in name.parts)
