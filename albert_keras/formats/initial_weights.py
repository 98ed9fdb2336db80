"""Weights to start training, an export or a conversion from, with their shape and tokenizer.

The three belong together: weights used with another vocabulary or another number of heads load
without an error and produce nonsense.
"""

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from albert_keras.config import FREE_SETTINGS, AlbertConfig
from albert_keras.formats import google_bert
from albert_keras.formats.find import FoundWeights, find_weights
from albert_keras.formats.foreign_hint import missing_part
from albert_keras.formats.foreign_weights import read_foreign
from albert_keras.formats.loading import LoadReport, encoder_digest, load_encoder, report_random
from albert_keras.formats.model_weights import HEADS
from albert_keras.models.position_extension import (
    LengthenedTensors,
    TensorsWithoutTable,
    copied_positions,
)
from albert_keras.models.vocabulary_extension import ExtendedTensors
from albert_keras.shipped_models import find_model
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_extension import segments_of_added

_RECORD, _SHAPE = "run.json", "albert_config.json"


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
    origin_positions: int = 0  # positions that were trained before this training, if it is known

    def __str__(self):
        return self.path if self.step is None else f"{self.path} step {self.step}"

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the encoder's weights, see `encoder_digest`; or "random"."""
        return "random" if self._open is None else encoder_digest(self._open())

    def describe(self) -> dict[str, Any]:
        """Returns the entries of `run.json` about the weights that a run was started from."""
        return {
            "origin": str(self),
            "origin_digest": self.digest,
            "origin_positions": self.trained_positions,
        }

    @functools.cached_property
    def heads(self) -> tuple[str, ...]:
        """The `HEADS` of `formats/model_weights.py` that the weights have."""
        names = () if self._open is None else self._open().shapes
        return tuple(
            head for head, starts in HEADS.items() if any(name.startswith(starts) for name in names)
        )

    @property
    def tensors(self):
        """All tensors, with `shapes`, `types` and `read(name)`; None if they are random."""
        return None if self._open is None else self._open()

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

    @property
    def trained_positions(self) -> int:
        """Longest sequence in training, in tokens, as far as it is known; 0 for random weights.

        It includes the training of earlier weights that these weights were started from.
        """
        if self._open is None:
            return 0
        longest = self.albert_config.max_position_embeddings
        return min(max(self.max_seq_length or longest, self.origin_positions), longest)

    def lengthened(self, positions: int | None) -> "InitialWeights":
        """Returns the same weights for sequences of so many tokens; None changes nothing.

        New positions, and positions that were never trained, are copies of trained ones, see
        `copied_positions`.

        Raises:
            InputError: If there are more positions than `positions`, or too few were trained.
        """
        shape = self.albert_config
        if positions is None:
            return self
        is_too_short = self._open is not None and self.trained_positions < 3
        if positions < shape.max_position_embeddings or is_too_short:
            raise InputError(
                "`max_position_embeddings` must be at least as large as in the weights of "
                f"`{self}`, {shape.max_position_embeddings}. Received: {positions}."
            )
        seen, offset = self.trained_positions, shape.position_offset
        if positions == seen:
            return self
        return dataclasses.replace(
            self,
            albert_config=shape.replace(max_position_embeddings=positions),
            _open=self._open
            and (
                lambda: LengthenedTensors(self._open(), copied_positions(seen, positions, offset))
            ),
        )

    def with_rotary_positions(self) -> "InitialWeights":
        """Returns the same weights for a model whose positions are rotary.

        The table of absolute positions is discarded. Training must continue: the model first has to
        learn to read positions from the rotated queries and keys.
        """
        shape = self.albert_config
        if shape.position_embedding == "rotary":
            return self
        return dataclasses.replace(
            self,
            albert_config=shape.replace(position_embedding="rotary", position_offset=0),
            _open=self._open and (lambda: TensorsWithoutTable(self._open())),
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
            the weights; a given one may differ from it in dropout and attention only.
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
        name,
        found.kind,
        found.step,
        shape,
        tokenizer,
        folder,
        found.open,
        found.max_seq_length,
        found.origin_positions,
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
