"""Weights to start training, an export or a conversion from, with their shape and tokenizer.

The three belong together: weights used with another vocabulary or another number of heads load
without an error and produce nonsense.
"""

import dataclasses
import functools
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from albert_keras.config import FREE_SETTINGS, AlbertConfig
from albert_keras.interop import google_bert
from albert_keras.interop.checkpoint_tensors import CheckpointTensors
from albert_keras.interop.foreign_hint import missing_part
from albert_keras.interop.model_weights import HEADS
from albert_keras.models.vocabulary_extension import ExtendedTensors
from albert_keras.runs.checkpoints import find_damage
from albert_keras.runs.run import Run
from albert_keras.shipped_models import find_model
from albert_keras.weights.foreign_weights import read_foreign
from albert_keras.weights.load import (
    LoadReport,
    encoder_digest,
    encoder_names,
    load_encoder,
    open_keras_file,
    report_random,
    shape_in_keras_file,
)
from data_pipeline.errors import InputError
from data_pipeline.file_digests import DIGESTS
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_extension import segments_of_added

_RECORD, _EXPORT = "run.json", "export.json"
_CHECKPOINT_FILE = re.compile(r"(.+)\.(index|meta|data-\d{5}-of-\d{5})")
_SHAPE = "albert_config.json"


@dataclass(frozen=True)
class InitialWeights:
    """Weights to start from, the shape of their model and their tokenizer."""

    path: str  # as given; "random" for random weights
    kind: str  # "run", "checkpoint", "export", "keras", "random", or the name of a foreign format
    step: int | None  # number of training steps, if it is known
    albert_config: AlbertConfig
    tokenizer: Tokenizer
    tokenizer_folder: Path | None  # its folder; None if it was a single file or an object
    _open: Callable | None = field(repr=False, compare=False)
    max_seq_length: int | None = None  # tokens per sequence in training, if it is known

    def __str__(self):
        return self.path if self.step is None else f"{self.path} step {self.step}"

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the encoder's weights, see `encoder_digest`; or "random"."""
        return "random" if self._open is None else encoder_digest(self._open())

    @functools.cached_property
    def heads(self) -> tuple[str, ...]:
        """The `HEADS` of `interop/model_weights.py` that the weights have."""
        names = () if self._open is None else self._open().shapes
        return tuple(
            head for head, starts in HEADS.items() if any(name.startswith(starts) for name in names)
        )

    def load(self, model, with_head=False, heads=()) -> LoadReport:
        """Assigns the encoder's weights to a model, all or none; see `load_encoder`."""
        if self._open is None:
            return report_random(model)
        return load_encoder(self._open(), model, str(self), with_head, heads)

    def extended(self, tokenizer) -> "InitialWeights":
        """Returns the same weights with rows for the larger vocabulary of a tokenizer.

        It must extend the present one, or InputError is raised; for the rows see `ExtendedTensors`.
        """
        segments = segments_of_added(self.tokenizer, tokenizer)
        return dataclasses.replace(
            self,
            albert_config=self.albert_config.replace(vocab_size=tokenizer.vocab_size),
            tokenizer=tokenizer,
            tokenizer_folder=None,
            _open=lambda: ExtendedTensors(self._open(), segments),
        )


def open_weights(
    path: str | Path | None = None,
    step: int | str | None = None,
    albert_config: str | Path | AlbertConfig | None = None,
    tokenizer: str | Path | Tokenizer | None = None,
) -> InitialWeights:
    """Finds weights together with their shape and tokenizer.

    Args:
        path: Folder of a run or of one of its checkpoints; prefix of a TensorFlow checkpoint with
            the reference's names (with or without `.index`, and `module/` before all names), or a
            folder with one; folder of an export or of one of its versions; the name of a shipped
            model, see `find_model`; a `.keras` file of this package; a model in one of
            `FOREIGN_FORMATS`, which is converted while it is loaded. None or "random" for random
            weights.
        step: Checkpoint of a run, or "best"; None means the newest valid one.
        albert_config: A JSON file or a name such as "albert-base". None takes the one stored beside
            the weights; a given one may differ from it in dropout only.
        tokenizer: Folder, `.model` file or `vocab.txt`; None takes the one stored beside the
            weights.

    Raises:
        InputError: If weights, shape or tokenizer are missing, damaged or do not fit together.
    """
    name = "random" if path is None else str(path)
    found = None if name == "random" else _find(find_model(path), step, tokenizer is None)
    if found is None and step is not None:
        raise InputError(
            f"`step` applies to the folder of a run only. Received: step {step} without a run."
        )
    tokenizer, folder = _tokenizer(name, found, tokenizer)
    shape = _shape(name, found, albert_config, tokenizer.vocab_size)
    if tokenizer.vocab_size != shape.vocab_size:
        raise InputError(
            f"The tokenizer of `{name}` must have {shape.vocab_size:,} pieces, the `vocab_size` of "
            f"its albert_config. Received: {tokenizer.vocab_size:,}."
        )
    if found is None:
        return InitialWeights(name, "random", None, shape, tokenizer, folder, None)
    return InitialWeights(
        name, found.kind, found.step, shape, tokenizer, folder, found.open, found.max_seq_length
    )


def _find(path, step, wants_tokenizer):
    """Finds weights in our formats or, if there are none, in a foreign one."""
    try:
        found, problem = find_weights(path, step), None
        if found.kind != "checkpoint" or not google_bert.is_source(path):
            return found
    except InputError as error:
        problem = error
    foreign = read_foreign(path, wants_tokenizer) if step is None else None
    if foreign is not None:
        return FoundWeights(
            foreign.format,
            None,
            lambda: foreign.tensors,
            (),
            foreign.shape,
            tokenizer=foreign.tokenizer,
        )
    if problem is None:
        return found
    lacks = missing_part(path)
    raise InputError(f"{problem}{lacks}") if lacks else problem


def _shape(name, found, given, vocab_size):
    """Returns the AlbertConfig; if there are several sources, they must agree."""
    shapes = {}
    if isinstance(given, AlbertConfig):
        shapes["`albert_config`"] = given
    elif given is not None and (Path(given).is_file() or str(given).endswith(".json")):
        shapes[f"`{given}`"] = AlbertConfig.from_reference_json(given)
    elif given is not None:
        shapes[f"`{given}`"] = AlbertConfig.from_name(str(given), vocab_size=vocab_size)
    if found is not None and found.shape is not None:
        shapes[f"`{name}`"] = found.shape
    for folder in found.folders if found is not None else ():
        file = folder / _SHAPE
        # Opening a run compares its file with run.json; one of its checkpoints may be shallower.
        if file.is_file() and not (folder / _RECORD).is_file():
            shapes[f"`{file}`"] = AlbertConfig.from_reference_json(file)
    if not shapes:
        raise InputError(
            f"`{name}` has no albert_config. Pass a JSON file or the name of a size with "
            "--albert-config (`albert_config`)."
        )
    (first, shape), *others = shapes.items()
    for source, other in others:
        problems = [
            f"{key}: {value!r} in {first}, {getattr(other, key)!r} in {source}"
            for key, value in shape
            if key not in FREE_SETTINGS and value != getattr(other, key)
        ]
        if problems:
            listing = "\n  ".join(problems)
            raise InputError(f"The shapes given for the weights of `{name}` differ:\n  {listing}")
    return shape


def _tokenizer(name, found, given):
    """Returns the Tokenizer and its folder, or None if it has no folder of its own."""
    path = None
    if given is None and found is not None and found.tokenizer is not None:
        given = found.tokenizer
    if not isinstance(given, Tokenizer):
        path = Path(given) if given else _tokenizer_beside(found.folders if found else ())
        if path is None:
            raise InputError(
                f"`{name}` has no tokenizer. Pass its folder, a SentencePiece .model file or a "
                "WordPiece vocab.txt with --tokenizer (`tokenizer`)."
            )
    tokenizer = given if path is None else Tokenizer.load(path)
    digest = found.tokenizer_digest if found else None
    if digest is not None and tokenizer.digest != digest:
        raise InputError(
            f"The digest of the tokenizer for `{name}` must be {digest}, as in its training. "
            f"Received: {tokenizer.digest}{f' ({path})' if path else ''}."
        )
    return tokenizer, path if path and path.is_dir() else None


def _tokenizer_beside(folders):
    for folder in folders:
        if (folder / TOKENIZER_FOLDER).is_dir():
            return folder / TOKENIZER_FOLDER
        models = sorted([*folder.glob("*.model"), *folder.glob("vocab*.txt")])
        if len(models) > 1:
            listing = ", ".join(path.name for path in models)
            raise InputError(
                f"`{folder}` contains several tokenizers. Give one of them: {listing}."
            )
        if models:
            return models[0]
    return None


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


def find_weights(path, step=None) -> FoundWeights:
    """Finds trained weights at a path (Path); see `open_weights` for arguments and errors."""
    if path.is_dir() and (path / _RECORD).is_file():
        checkpoints = Run.open(path).checkpoints
        step = checkpoints.choose(step)
        if step not in checkpoints.steps():
            listing = ", ".join(map(str, checkpoints.steps())) or "none"
            raise InputError(f"`{path}` has no checkpoint of step {step}. It has: {listing}.")
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
        f"of a TensorFlow checkpoint (`{path.name}.index` must exist), or a `.keras` file."
    )


def _find_in_folder(path):
    runs = sorted(file.parent.name for file in path.glob(f"seed-*/{_RECORD}"))
    if runs:
        raise InputError(f"`{path}` contains several runs. Choose one of them: {', '.join(runs)}.")
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
        f"Checkpoints in it: {found}."
    )


def _checkpoint(prefix, kind="checkpoint"):
    folder = Path(prefix).parent
    saved = None
    if (folder / DIGESTS).is_file():
        named = re.match(r"step-(\d{8,})", folder.name)
        saved = int(named[1]) if named else _read_json(folder / DIGESTS).get("step")
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
    length = run.record["data"].get("max_seq_length")
    if saved is not None:
        trained_as = run.trained_as(folder, saved)
        trained_as.log_depth()
        shape, length = trained_as.albert_config, trained_as.max_seq_length
    return FoundWeights(kind, step, open_it, folders, shape, digest, max_seq_length=length)


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
    record = _read_json(folder / _EXPORT) if (folder / _EXPORT).is_file() else {}
    run = record.get("run")
    digest = run.get("tokenizer_digest") if isinstance(run, dict) else None
    shape = shape_in_keras_file(path)
    open_it = functools.partial(open_keras_file, path)
    folders = (folder, path.parent) if record else (path.parent,)
    length = record.get("max_seq_length")
    return FoundWeights(
        kind, record.get("step"), open_it, folders, shape, digest, max_seq_length=length
    )


def _read_json(path):
    try:
        return dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(f"`{path}` must contain a JSON object. Received: {error}.") from error
