"""Our own format: runs, exports and `.keras` files are read; a folder with a checkpoint is written.

What is written has the names of google-research/albert in `model.ckpt.*`, the shape in
`albert_config.json` and the vocabulary in `tokenizer/`: a fine-tuning can start from it. A model
with the head of a task becomes a fine-tuned run, which answers.
"""

import tempfile
from pathlib import Path

from albert_keras.config import AlbertConfig
from albert_keras.conversion.task_run import FOREIGN_KEYS, write_task_run
from albert_keras.formats.checkpoint_tensors import is_training_state
from albert_keras.formats.find import find_weights
from albert_keras.formats.model_folder import read_tokenizer_files, write_files
from albert_keras.formats.model_weights import ModelWeights
from albert_keras.formats.tensor_table import read_reference_tensors
from albert_keras.runs.run import Run
from albert_keras.runs.tensors import write_tensors
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.finetuned import find_runs, is_finetuned
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from data_pipeline.files import sha256_of
from data_pipeline.limits import MAX_VOCABULARY_BYTES, read_json, read_limited
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.tokenizers.tokenization import Tokenizer

NAME = "albert-keras"
#: What `albert-keras convert` writes into each folder.
RECORD = "conversion.json"
_RUN, _EXPORT, _RESULTS, _SHAPE = "run.json", "export.json", "results.json", "albert_config.json"
_PREFIX = "model.ckpt"


def is_source(path: str | Path) -> bool:
    """Returns whether a path is a run, one of its checkpoints, an export, a `.keras` file or a
    folder written by `write`."""
    path = Path(path)
    if path.is_file() and path.suffix == ".keras":
        return True
    marks = (_RUN, _EXPORT, _RESULTS, f"*/{_EXPORT}", f"seed-*/{_RUN}")
    if path.is_dir() and any(any(path.glob(mark)) for mark in marks):
        return True
    folder = path if path.is_dir() else path.parent
    # RUN/checkpoints/step-00000500/model.ckpt
    if folder.is_dir() and any((above / _RUN).is_file() for above in folder.absolute().parents[:2]):
        return any(folder.glob("*.index"))
    try:
        return read_json(folder / RECORD).get("format") == NAME
    except InputError:
        return False


def read(path, trust_pickle=False, config=None) -> ModelWeights:
    """Reads a model of ours; see `formats`.

    `path` is as for `open_weights`. A fine-tuning is read from its best seed, a fine-tuned run from
    its best checkpoint. `tokenizer_files` are the files of the tokenizer's folder, or one model
    file.
    """
    path, step = Path(path), None
    if path.is_dir() and is_finetuned(path):
        (path,) = find_runs(path)
        step = "best"
    _check_head(path)
    found = find_weights(path, step)
    config = _with_foreign_keys(_shape(found, config, path), path)
    stored = found.open()
    names = [name for name in stored.shapes if not is_training_state(name)]
    tensors = {name: stored.read(name) for name in names}
    return ModelWeights(
        config,
        read_reference_tensors(config, tensors, path),
        str(path),
        _tokenizer_files(found.folders),
        _labels(path),
    )


def write(weights: ModelWeights, folder: str | Path, task: TaskConfig | None = None):
    """Writes a model as a folder that `albert-keras finetune --from` reads; see `formats`.

    `tokenizer_files` are the files of a tokenizer's folder, or empty. If a task is given, see
    `task_of_head`, they must not be empty, and the folder is a fine-tuned run.
    """
    folder = Path(folder)
    tensors = read_reference_tensors(weights.config, weights.tensors, weights.source)
    if task is not None:
        with tempfile.TemporaryDirectory() as temporary:
            write_files(temporary, weights.tokenizer_files)
            tokenizer = Tokenizer.load(temporary)
        write_task_run(weights._replace(tensors=tensors), tokenizer, task, folder)
        return
    write_tensors(folder / _PREFIX, tensors)
    weights.config.save(folder / _SHAPE)
    if weights.tokenizer_files:
        (folder / TOKENIZER_FOLDER).mkdir()
        write_files(folder / TOKENIZER_FOLDER, weights.tokenizer_files)


def source_files(path: Path) -> dict[str, str]:
    """Hashes the files of a model: name, relative to the folder -> SHA-256, in hexadecimal.

    For a run, these are `run.json` and the checkpoint that is read; for any other folder, all files
    that are not hidden; for the prefix of a checkpoint, the files of this checkpoint.
    """
    if not path.is_dir():
        files = [path] if path.is_file() else sorted(path.parent.glob(f"{path.name}.*"))
        return {file.name: sha256_of(file) for file in files if file.is_file()}
    step = None
    if is_finetuned(path):
        (path,), step = find_runs(path), "best"
    if (path / _RUN).is_file():
        checkpoints = Run.open(path).checkpoints
        folder = Path(checkpoints.prefix(checkpoints.choose(step))).parent
        files = [path / _RUN, *sorted(folder.iterdir())]
    else:
        files = sorted(path.rglob("*"))
    below = {file.relative_to(path): file for file in files if file.is_file()}
    return {
        name.as_posix(): sha256_of(file)
        for name, file in below.items()
        if not any(part.startswith(".") for part in name.parts)
    }


def _check_head(path):
    """Raises InputError for a run whose head other formats do not have."""
    if not (path / _RUN).is_file():
        return
    config = Run.open(path).record["config"]
    if config["model"].get("freeze_encoder"):
        raise InputError(
            f"`{path}` must be a run whose encoder was fine-tuned. Received: a head on layers of a "
            "frozen encoder, which other formats do not have. Convert the model that it was "
            "started from; its encoder has the same weights."
        )
    if config.get("task", {}).get("pair_encoding", "joint") != "joint":
        raise InputError(
            f"`{path}` must be a run that encodes pairs as one sequence (`pair_encoding` joint). "
            "Received: a head that compares two texts, which other formats do not have."
        )


def _shape(found, given, path):
    beside = [folder / _SHAPE for folder in found.folders if (folder / _SHAPE).is_file()]
    if given is not None and (found.shape or beside):
        raise InputError(f"`{path}` already contains the shape of its model. Omit --config.")
    if found.shape is not None:
        return found.shape
    files = [given] if given is not None else beside
    if not files:
        raise InputError(f"`{path}` has no {_SHAPE}: pass one with --config.")
    return AlbertConfig.from_reference_json(files[0])


def _with_foreign_keys(config, path):
    """Adds the keys by which transformers distinguishes the task of a fine-tuned run."""
    task = task_config_of(path)
    keys = FOREIGN_KEYS.get(build_task(task).kind, {}) if task else {}
    return config.replace(foreign_keys=config.foreign_keys | keys) if keys else config


def _tokenizer_files(folders):
    for folder in folders:
        tokenizer = folder / TOKENIZER_FOLDER
        if tokenizer.is_dir():
            files = sorted(path for path in tokenizer.iterdir() if path.is_file())
            return {path.name: read_limited(path, MAX_VOCABULARY_BYTES) for path in files}
    return read_tokenizer_files(*folders)


def _labels(path: Path) -> tuple[str, ...]:
    """Returns the names of the classes of a fine-tuned run."""
    task = task_config_of(path)
    return () if task is None else tuple(build_task(task).labels)


def task_config_of(path: Path) -> TaskConfig | None:
    """Returns the task of a fine-tuned run; None for any other path."""
    if not (path / _RUN).is_file():
        return None
    run = Run.open(path)
    if run.kind != "finetuning":
        return None
    return FinetuneConfig(task=run.record["config"]["task"]).task
