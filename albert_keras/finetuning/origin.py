"""Where a fine-tuning begins: a run, a checkpoint, an export, a `.keras` file or random weights.

Each of them comes with the shape of its model and its tokenizer, and none of the three goes without
the others: weights under another vocabulary, or run with another number of heads, load without a
word and answer nonsense.
"""

import functools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from albert_keras.config import AlbertConfig
from albert_keras.finetuning.load_report import (
    CheckpointTensors,
    LoadReport,
    encoder_digest,
    encoder_names,
    load_encoder,
    open_keras_file,
    report_random,
    shape_in_keras_file,
)
from albert_keras.training.digests import DIGESTS, damage_of
from albert_keras.training.run import Run
from data_pipeline.dataset_info import TOKENIZER_FOLDER
from data_pipeline.errors import InputError
from data_pipeline.tokenization import Tokenizer

_RECORD, _SHAPE, _EXPORT, _KERAS = "run.json", "albert_config.json", "export.json", "model.keras"
_CHECKPOINT_FILE = re.compile(r"(.+)\.(index|meta|data-\d{5}-of-\d{5})")
#: Settings of a shape that trained weights do not depend on.
_FREE = frozenset(
    ("hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range")
    + ("down_scale_factor", "foreign_keys")
)


@dataclass(frozen=True)
class Origin:
    """Weights to begin with, the shape of their model and their tokenizer.

    Attributes:
        path: str. As it was given; "random" if there are no weights.
        kind: str. "run", "checkpoint", "export", "keras" or "random".
        step: int or None. How long the weights were trained, where that is known.
        albert_config: AlbertConfig.
        tokenizer: Tokenizer. `Tokenizer.save` writes it into the folder of a new run.
        tokenizer_folder: Path or None. Where it lies; None if it came as a bare model or an object.
    """

    path: str
    kind: str
    step: int | None
    albert_config: AlbertConfig
    tokenizer: Tokenizer
    tokenizer_folder: Path | None
    _open: Callable | None = field(repr=False, compare=False)

    def __str__(self):
        return self.path if self.step is None else f"{self.path} step {self.step}"

    @functools.cached_property
    def digest(self):
        """str. SHA-256 of the encoder's weights, see `encoder_digest`; "random" if there are none.

        The weights are read for it, once.
        """
        return "random" if self._open is None else encoder_digest(self._open())

    def load(self, model, with_head=False) -> LoadReport:
        """Assigns the encoder's weights to those of a model, all or none; see `load_encoder`.

        Raises:
            InputError: With all tensors that do not fit; the model is as it was then.
        """
        if self._open is None:
            return report_random(model)
        return load_encoder(self._open(), model, str(self), with_head)


class _Weights(NamedTuple):
    """Weights that were found, and what is known about them."""

    kind: str
    step: int | None
    open: Callable
    folders: tuple[Path, ...]  # where shape and tokenizer may lie, the nearest first
    shape: AlbertConfig | None = None
    tokenizer_digest: str | None = None


def open_origin(path=None, step=None, albert_config=None, tokenizer=None) -> Origin:
    """Finds weights together with their shape and tokenizer.

    Args:
        path: str, Path or None. Folder of a run or of one of its checkpoints; prefix of a
            TensorFlow checkpoint with the reference's names (`.index` and `module/` before all
            names do no harm), or a folder with one; folder of an export or one of its versions; a
            `.keras` file of ours. None or "random" for random weights.
        step: int, "best" or None. Of a run, which checkpoint; None takes the newest sound one.
        albert_config: str, Path, AlbertConfig or None. A JSON file or a name such as "albert-base";
            None takes the one that lies beside the weights. Dropout may differ from that.
        tokenizer: str, Path, Tokenizer or None. Folder or `.model` file; None as before.

    Returns:
        Origin.

    Raises:
        InputError: If there is nothing of the kind, it is damaged, its shape or tokenizer is not
            found, or these contradict each other.
    """
    name = "random" if path is None else str(path)
    found = None if name == "random" else _find(Path(path), step)
    if found is None and step is not None:
        raise InputError(f"`step` is for the folder of a run. Received: {step}, no run.")
    tokenizer, folder = _tokenizer(name, found, tokenizer)
    shape = _shape(name, found, albert_config, tokenizer.vocab_size)
    if tokenizer.vocab_size != shape.vocab_size:
        raise InputError(
            f"The tokenizer of `{name}` should have {shape.vocab_size:,} pieces, `vocab_size` of "
            f"its albert_config. Received: {tokenizer.vocab_size:,}."
        )
    if found is None:
        return Origin(name, "random", None, shape, tokenizer, folder, None)
    return Origin(name, found.kind, found.step, shape, tokenizer, folder, found.open)


def _find(path, step):
    if path.is_dir() and (path / _RECORD).is_file():
        checkpoints = Run.open(path).checkpoints
        step = checkpoints.choose(step)
        if step not in checkpoints.steps():
            listing = ", ".join(map(str, checkpoints.steps())) or "none"
            raise InputError(f"`{path}` has no checkpoint of step {step}. It has: {listing}.")
        return _checkpoint(checkpoints.prefix(step), "run")
    if step is not None:
        raise InputError(f"`step` is for the folder of a run. Received: {step} and `{path}`.")
    if path.is_dir():
        return _find_in_folder(path)
    if path.suffix == ".keras" and path.is_file():
        return _keras_file(path, "keras")
    match = _CHECKPOINT_FILE.fullmatch(str(path))
    prefix = match[1] if match else str(path)
    if Path(f"{prefix}.index").is_file():
        return _checkpoint(prefix)
    raise InputError(
        f"`{path}` should be the folder of a run (with {_RECORD}), of a checkpoint or of an export "
        f"(with {_KERAS}), the prefix of a TensorFlow checkpoint (with `{path.name}.index` beside "
        "it), or a `.keras` file. There is nothing of these."
    )


def _find_in_folder(path):
    runs = sorted(file.parent.name for file in path.glob(f"seed-*/{_RECORD}"))
    if runs:
        raise InputError(f"`{path}` holds several runs. Choose one of them: {', '.join(runs)}.")
    if (path / _KERAS).is_file():
        return _keras_file(path / _KERAS, "export")
    versions = [file.parent for file in path.glob(f"*/{_KERAS}")]
    versions = [folder for folder in versions if re.fullmatch(r"[1-9]\d*", folder.name)]
    if versions:
        return _keras_file(max(versions, key=lambda folder: int(folder.name)) / _KERAS, "export")
    prefixes = sorted(str(file).removesuffix(".index") for file in path.glob("*.index"))
    if len(prefixes) == 1:
        return _checkpoint(prefixes[0])
    found = ", ".join(prefixes) or "none"
    raise InputError(
        f"`{path}` should be the folder of a run (with {_RECORD}), of an export (with {_KERAS} in "
        f"it or in its versions) or of one checkpoint. Checkpoints in it: {found}."
    )


def _checkpoint(prefix, kind="checkpoint"):
    folder = Path(prefix).parent
    if (folder / DIGESTS).is_file():
        saved = _read_json(folder / DIGESTS).get("step")
        named = re.match(r"step-(\d{8,})", folder.name)
        damage = damage_of(folder, int(named[1]) if named else saved)
        if damage is not None:
            raise InputError(f"Checkpoint `{folder}` is damaged: {damage}.")
    open_it = functools.partial(CheckpointTensors, prefix)
    tensors = open_it()
    if not encoder_names(tensors):
        some = ", ".join(sorted(tensors.shapes)[:3]) or "nothing"
        raise InputError(
            f"`{prefix}` should hold tensors `bert/...`, named as in the reference. It has: {some}."
        )
    step = int(tensors.read("global_step")) if "global_step" in tensors.shapes else None
    # RUN/checkpoints/step-00000500/model.ckpt
    folders = (folder, *folder.absolute().parents[:2])
    above = [place for place in folders if (place / _RECORD).is_file()]
    if not above:
        return _Weights(kind, step, open_it, (folder,))
    run = Run.open(above[0])
    folders = folders[: folders.index(run.path) + 1]
    digest = run.record.get("tokenizer_digest")
    return _Weights(kind, step, open_it, folders, run.albert_config, digest)


def _keras_file(path, kind):
    record = _read_json(path.with_name(_EXPORT)) if path.with_name(_EXPORT).is_file() else {}
    run = record.get("run")
    digest = run.get("tokenizer_digest") if isinstance(run, dict) else None
    shape = shape_in_keras_file(path)
    open_it = functools.partial(open_keras_file, path)
    return _Weights(kind, record.get("step"), open_it, (path.parent,), shape, digest)


def _shape(name, found, given, vocab_size):
    """Returns the AlbertConfig: of several sources the first, and the others have to agree."""
    shapes = {}
    if isinstance(given, AlbertConfig):
        shapes["the one given"] = given
    elif given is not None and (Path(given).is_file() or str(given).endswith(".json")):
        shapes[f"`{given}`"] = AlbertConfig.from_reference_json(given)
    elif given is not None:
        shapes[f"`{given}`"] = AlbertConfig.from_name(str(given), vocab_size=vocab_size)
    if found is not None and found.shape is not None:
        shapes[f"`{name}`"] = found.shape
    for file in (folder / _SHAPE for folder in (found.folders if found is not None else ())):
        if file.is_file():
            shapes[f"`{file}`"] = AlbertConfig.from_reference_json(file)
    if not shapes:
        raise InputError(f"`{name}` comes without an albert_config: give a JSON file or a name.")
    (first, shape), *others = shapes.items()
    for source, other in others:
        problems = [
            f"{key}: {value!r} in {first}, {getattr(other, key)!r} in {source}"
            for key, value in shape
            if key not in _FREE and value != getattr(other, key)
        ]
        if problems:
            listing = "\n  ".join(problems)
            raise InputError(f"Two shapes for the weights of `{name}`:\n  {listing}")
    return shape


def _tokenizer(name, found, given):
    """Returns the Tokenizer and its folder, None if it is not in one of its own."""
    path = None
    if not isinstance(given, Tokenizer):
        path = Path(given) if given else _tokenizer_beside(found.folders if found else ())
        if path is None:
            raise InputError(f"`{name}` comes without a tokenizer: give a folder or a .model file.")
    tokenizer = given if path is None else Tokenizer.load(path)
    digest = found.tokenizer_digest if found else None
    if digest is not None and tokenizer.digest != digest:
        raise InputError(
            f"The tokenizer for `{name}` should have the digest {digest}, as in its training. "
            f"Received: {tokenizer.digest}{f' ({path})' if path else ''}."
        )
    return tokenizer, path if path and path.is_dir() else None


def _tokenizer_beside(folders):
    for folder in folders:
        if (folder / TOKENIZER_FOLDER).is_dir():
            return folder / TOKENIZER_FOLDER
        models = sorted(folder.glob("*.model"))
        if len(models) > 1:
            listing = ", ".join(path.name for path in models)
            raise InputError(f"`{folder}` holds several tokenizers. Give one of them: {listing}.")
        if models:
            return models[0]
    return None


def _read_json(path):
    try:
        return dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"`{path}` should hold a JSON object. Received: {error}.") from error
