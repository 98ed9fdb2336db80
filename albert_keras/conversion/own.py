"""Our own format: runs, exports and `.keras` files are read; a folder with a checkpoint is written.

What is written has the names of google-research/albert in `model.ckpt.*`, the shape in
`albert_config.json` and the vocabulary in `tokenizer/`: a place where a fine-tuning can begin.
"""

import json
from pathlib import Path

from albert_keras.config import AlbertConfig
from albert_keras.finetuning.config import FinetuneConfig
from albert_keras.finetuning.finetuned import find_runs, is_finetuned
from albert_keras.interop.checkpoint_tensors import is_training_state, write_tensors
from albert_keras.interop.model_folder import read_tokenizer_files
from albert_keras.interop.model_weights import ModelWeights
from albert_keras.interop.tensor_table import read_reference_tensors
from albert_keras.runs.run import Run
from albert_keras.tasks.build import build_task
from albert_keras.weights.find import find_weights
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER

NAME = "albert-keras"
#: What `albert-keras convert` leaves in each folder it writes.
RECORD = "conversion.json"
_RUN, _EXPORT, _RESULTS, _SHAPE = "run.json", "export.json", "results.json", "albert_config.json"
_PREFIX = "model.ckpt"


def is_source(path):
    """Tells whether a path is a run, a checkpoint of one, an export, a `.keras` file or a folder
    that `write` made (bool)."""
    path = Path(path)
    if path.is_file() and path.suffix == ".keras":
        return True
    marks = (_RUN, _EXPORT, _RESULTS, f"*/{_EXPORT}", f"seed-*/{_RUN}")
    if path.is_dir() and any(any(path.glob(mark)) for mark in marks):
        return True
    folder = path if path.is_dir() else path.parent
    # RUN/checkpoints/step-00000500/model.ckpt
    if folder.is_dir() and any((above / _RUN).is_file() for above in _two_above(folder)):
        return any(folder.glob("*.index"))
    return _was_written(folder)


def read(path, trust_pickle=False, config=None):
    """Reads a model of ours.

    Args:
        path: str or Path. As of `open_weights`; of a fine-tuning, its best seed is taken, and of a
            fine-tuned run the best checkpoint.
        trust_pickle: bool. Without meaning here: nothing is pickled.
        config: str, Path or None. An `albert_config.json`, for a checkpoint without one.

    Returns:
        ModelWeights. `tokenizer_files` are those of the tokenizer's folder, or a bare model.

    Raises:
        InputError: If there is nothing of the kind, it is damaged, or its tensors are not those of
            the model that its shape describes.
    """
    path, step = Path(path), None
    if path.is_dir() and is_finetuned(path):
        (path,) = find_runs(path)
        step = "best"
    found = find_weights(path, step)
    config = _shape(found, config, path)
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


def write(weights, folder):
    """Writes a model as a folder that `albert-keras finetune --from` takes.

    Args:
        weights: ModelWeights. `tokenizer_files` are those of a tokenizer's folder, or there are
            none.
        folder: str or Path. An empty folder.

    Raises:
        InputError: If the tensors are not those of the model.
    """
    folder = Path(folder)
    tensors = read_reference_tensors(weights.config, weights.tensors, weights.source)
    write_tensors(folder / _PREFIX, tensors)
    weights.config.save(folder / _SHAPE)
    if weights.tokenizer_files:
        (folder / TOKENIZER_FOLDER).mkdir()
    for name, content in weights.tokenizer_files.items():
        (folder / TOKENIZER_FOLDER / name).write_bytes(content)


def _two_above(folder):
    return folder.absolute().parents[:2]


def _was_written(folder):
    try:
        record = json.loads((folder / RECORD).read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(record, dict) and record.get("format") == NAME


def _shape(found, given, path):
    beside = [folder / _SHAPE for folder in found.folders if (folder / _SHAPE).is_file()]
    if given is not None and (found.shape or beside):
        raise InputError(f"`{path}` tells the shape of its model: leave --config out.")
    if found.shape is not None:
        return found.shape
    files = [given] if given is not None else beside
    if not files:
        raise InputError(f"`{path}` comes without an {_SHAPE}: give one with --config.")
    return AlbertConfig.from_reference_json(files[0])


def _tokenizer_files(folders):
    for folder in folders:
        tokenizer = folder / TOKENIZER_FOLDER
        if tokenizer.is_dir():
            files = sorted(path for path in tokenizer.iterdir() if path.is_file())
            return {path.name: path.read_bytes() for path in files}
    return read_tokenizer_files(*folders)


def _labels(path):
    """Names the classes of a fine-tuned run: tuple of str."""
    if not (path / _RUN).is_file():
        return ()
    run = Run.open(path)
    if run.kind != "finetuning":
        return ()
    task = FinetuneConfig(task=run.record["config"]["task"]).task
    return tuple(build_task(task).labels)
