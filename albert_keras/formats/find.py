"""Finds trained weights in the formats of this project, and what is stored with them."""

import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from albert_keras.config import AlbertConfig
from albert_keras.formats.checkpoint_tensors import CheckpointTensors
from albert_keras.formats.loading import encoder_names, open_keras_file, shape_in_keras_file
from albert_keras.runs.checkpoints import find_damage
from albert_keras.runs.run import Run
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import DIGESTS
from data_pipeline.limits import read_json
from data_pipeline.tokenizers.tokenization import Tokenizer

_RECORD, _EXPORT = "run.json", "export.json"
_CHECKPOINT_FILE = re.compile(r"(.+)\.(index|meta|data-\d{5}-of-\d{5})")


class FoundWeights(NamedTuple):
    """Weights that were found, and what is known about them."""

    kind: str  # "run", "checkpoint", "export", "keras" or the name of a foreign format
    step: int | None  # number of training steps, if it is known
    open: Callable  # returns CheckpointTensors, ModelTensors or ArrayTensors
    folders: tuple[Path, ...]  # where to look for shape and tokenizer, the nearest first
    shape: AlbertConfig | None = None  # shape of the model, if it is stored with the weights
    tokenizer_digest: str | None = None  # digest of the tokenizer used in training, if it is known
    tokenizer: Tokenizer | None = None  # one that was converted from another format
    max_seq_length: int | None = None  # tokens per sequence in training, if it is known
    origin_positions: int = 0  # positions that were trained before this training, if it is known


def find_weights(path, step=None) -> FoundWeights:
    """Finds trained weights at a path (Path).

    Arguments and errors are the same as for `open_weights` in `initial_weights.py`.
    """
    if path.is_dir() and (path / _RECORD).is_file():
        checkpoints = Run.open(path).checkpoints
        step = checkpoints.choose(step)
        if step not in checkpoints.steps():
            listing = ", ".join(map(str, checkpoints.steps())) or "none"
            raise InputError(
                f"`{path}` has no checkpoint of step {step}. It has: {listing}.",
                Mistake.NO_CHECKPOINT,
            )
        return _checkpoint(checkpoints.prefix(step), "run")
    if step is not None:
        raise InputError(
            f"`step` applies to the folder of a run only. Received: step {step} of `{path}`."
        )
    if path.is_dir():
        return _find_in_folder(path)
    if path.suffix == ".keras" and path.is_file():
        return _keras_file(path, "keras")
    match = _CHECKPOINT_FILE.fullmatch(str(path))
    prefix = match[1] if match else str(path)
    if Path(f"{prefix}.index").is_file():
        return _checkpoint(prefix)
    raise InputError(
        f"No weights were found at `{path}`. It must be the folder of a run (with {_RECORD}), of a "
        f"checkpoint or of an export (with {_EXPORT}, and a `.keras` file beside it), the prefix "
        f"of a TensorFlow checkpoint (`{path.name}.index` must exist), or a `.keras` file.",
        Mistake.NO_WEIGHTS,
    )


def _find_in_folder(path):
    runs = sorted(file.parent.name for file in path.glob(f"seed-*/{_RECORD}"))
    if runs:
        listing = ", ".join(f"`{path / name}`" for name in runs)
        raise InputError(
            f"`{path}` is the folder of a fine-tuning. Give one of its runs: {listing}."
        )
    if (path / _EXPORT).is_file():
        return _export(path)
    versions = [file.parent for file in path.glob(f"*/{_EXPORT}")]
    versions = [folder for folder in versions if re.fullmatch(r"[1-9]\d*", folder.name)]
    if versions:
        return _export(max(versions, key=lambda folder: int(folder.name)))
    prefixes = sorted(str(file).removesuffix(".index") for file in path.glob("*.index"))
    if len(prefixes) == 1:
        return _checkpoint(prefixes[0])
    found = ", ".join(prefixes) or "none"
    raise InputError(
        f"No weights were found in `{path}`. It must be the folder of a run (with {_RECORD}), of "
        f"an export (with {_EXPORT} in it or in its versions) or of one checkpoint. "
        f"Checkpoints in it: {found}.",
        Mistake.NO_WEIGHTS,
    )


def _checkpoint(prefix, kind="checkpoint"):
    folder = Path(prefix).parent
    saved = None
    if (folder / DIGESTS).is_file():
        named = re.match(r"step-(\d{8,})", folder.name)
        saved = int(named[1]) if named else read_json(folder / DIGESTS).get("step")
        damage = find_damage(folder, saved)
        if damage is not None:
            raise InputError(f"Checkpoint `{folder}` is damaged: {damage}.")
    open_it = functools.partial(CheckpointTensors, prefix)
    tensors = open_it()
    if not encoder_names(tensors):
        some = ", ".join(sorted(tensors.shapes)[:3]) or "nothing"
        raise InputError(
            f"`{prefix}` must contain tensors `bert/...`, as the reference names them. It has: "
            f"{some}."
        )
    step = int(tensors.read("global_step")) if "global_step" in tensors.shapes else None
    # RUN/checkpoints/step-00000500/model.ckpt
    folders = (folder, *folder.absolute().parents[:2])
    above = [parent for parent in folders if (parent / _RECORD).is_file()]
    if not above:
        return FoundWeights(kind, step, open_it, (folder,))
    run = Run.open(above[0])
    folders = folders[: folders.index(run.path) + 1]
    digest, shape = run.record.get("tokenizer_digest"), run.albert_config
    length, origin = run.record["data"].get("max_seq_length"), _origin_positions(run.record)
    if saved is not None:
        trained_as = run.trained_as(folder, saved)
        trained_as.log_depth()
        shape, length = trained_as.albert_config, trained_as.max_seq_length
    return FoundWeights(
        kind,
        step,
        open_it,
        folders,
        shape,
        digest,
        max_seq_length=length,
        origin_positions=origin,
    )


def _export(folder):
    path = folder.with_name(f"{folder.name}.keras")
    if not path.is_file():
        raise InputError(
            f"The weights of the export `{folder}` are missing: there is no `{path.name}` beside "
            "it."
        )
    return _keras_file(path, "export")


def _keras_file(path, kind):
    folder = path.with_suffix("")  # the version folder, if it is the model of an export
    record = read_json(folder / _EXPORT) if (folder / _EXPORT).is_file() else {}
    run = record.get("run")
    run = run if isinstance(run, dict) else {}
    digest = run.get("tokenizer_digest")
    shape = shape_in_keras_file(path)
    open_it = functools.partial(open_keras_file, path)
    folders = (folder, path.parent) if record else (path.parent,)
    data = run.get("data")  # an export may serve shorter texts than it was trained on
    length = data.get("max_seq_length") if isinstance(data, dict) else None
    return FoundWeights(
        kind,
        record.get("step"),
        open_it,
        folders,
        shape,
        digest,
        max_seq_length=length,
        origin_positions=_origin_positions(run),
    )


def _origin_positions(record):
    """Returns how many positions the weights that a run started from were trained on; 0 if none."""
    data = record.get("data")
    if not isinstance(data, dict):
        return 0
    if data.get("origin") is not None and "origin_positions" not in data:
        return sys.maxsize  # an older run, whose origin may have trained all of them
    return int(data.get("origin_positions") or 0)
