"""A trained model with all that belongs to it: `OpenedModel`."""

import dataclasses
import functools
import operator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.formats.extension import PER_PIECE, copied_positions, extend_rows
from albert_keras.formats.keras_file import KerasFile
from albert_keras.formats.loading import (
    ArrayTensors,
    LoadReport,
    encoder_digest,
    encoder_names,
    load_encoder,
    report_random,
)
from albert_keras.formats.tensor_table import read_reference_tensors
from albert_keras.layers.weights import loaded_afterwards
from albert_keras.runs.model_record import ModelRecord, with_changes
from albert_keras.runs.tensors import assign_all, is_training_state, weight_names
from albert_keras.shape import POSITIONS, heads_of
from data_pipeline.errors import InputError, Mistake
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Attributes of a model that say how vectors of texts are computed.
EMBEDDING = ("pooling", "longest_text")


@dataclass(frozen=True)
class OpenedModel:
    """A trained model, or random weights, with all that belongs to it. See `open_weights`.

    Attributes:
        path: str. As given; "random" for random weights.
        kind: str. One of `KINDS` in `detection.py`, or "random".
        step: int or None. Number of training steps, if it is known.
        albert_config: AlbertConfig. The shape of the model.
        tensors: All tensors, with `shapes` and `read(name)`; None if they are random.
        place: Path or None. Where it was found: the run, also the best one of a fine-tuning; the
            version of an export; the prefix of a checkpoint; otherwise `path`.
        run: Run or None. The run, if it is one.
        record: ModelRecord or None. Class and settings of the model, with which it is built.
        task: dict or None. Settings of the task it was fine-tuned for, as `TaskConfig` takes them.
        labels: tuple of str. Names of the classes, if another library stored them.
        sequence_length: int or None. Tokens per sequence in training, if it is known.
        origin_positions: int. Positions that were trained before this training, if it is known.
        pooling: str or None. How the vector of a text is computed, if the model stores it.
        longest_text: int or None. Tokens after which a text is cut for its vector, if the model
            stores it.
        language: str or None. Code of the language of the text in pre-training, if it is known.
        tokenizer_digest: str or None. Of the tokenizer used in training, if it is known.
    """

    path: str = "random"
    kind: str = "random"
    albert_config: AlbertConfig = None  # type: ignore[assignment]  # `open_weights` sets it
    step: int | None = None
    _tokenizer: Tokenizer | None = field(repr=False, default=None)
    tensors: Any = field(repr=False, compare=False, default=None)
    place: Path | None = None
    run: Any = field(repr=False, compare=False, default=None)
    record: ModelRecord | None = field(repr=False, compare=False, default=None)
    task: dict[str, Any] | None = None
    labels: tuple[str, ...] = ()
    sequence_length: int | None = None
    origin_positions: int = 0
    pooling: str | None = None
    longest_text: int | None = None
    language: str | None = None
    tokenizer_digest: str | None = None

    @classmethod
    def of(
        cls, albert_config: AlbertConfig, arrays: dict, source: object, **known: Any
    ) -> "OpenedModel":
        """Returns a model in memory of arrays by the reference's names; `known` are attributes."""
        tensors = ArrayTensors(arrays)
        return cls(str(source), albert_config=albert_config, tensors=tensors, **known)

    def __str__(self):
        return self.path if self.step is None else f"{self.path} step {self.step}"

    @property
    def has_tokenizer(self) -> bool:
        """Whether a tokenizer was found or given."""
        return self._tokenizer is not None

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer; InputError if there is none."""
        if self._tokenizer is None:
            raise InputError(
                f"`{self.path}` has no tokenizer. Pass its folder, a SentencePiece .model file, a "
                "WordPiece vocab.txt or a tokenizer.json as `tokenizer`.",
                Mistake.NO_TOKENIZER,
            )
        return self._tokenizer

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the encoder's weights, see `encoder_digest`; or "random"."""
        return "random" if self.tensors is None else encoder_digest(self.tensors)

    @functools.cached_property
    def heads(self) -> tuple[str, ...]:
        """The `HEADS` of `shape.py` that the weights have."""
        return () if self.tensors is None else heads_of(self.tensors.shapes)

    @property
    def encoder_names(self) -> list[str]:
        """list of str. The weights of the encoder that `load` assigns; none if they are random."""
        return [] if self.tensors is None else encoder_names(self.tensors)

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        """Reads all tensors but training state."""
        names = (name for name in self.tensors.shapes if not is_training_state(name))
        return {name: self.tensors.read(name) for name in names}

    def in_memory(self) -> "OpenedModel":
        """Reads all tensors but training state; InputError if they do not match the shape."""
        checked = read_reference_tensors(self.albert_config, self.arrays, self.path)
        return dataclasses.replace(self, tensors=ArrayTensors(checked))

    def describe(self) -> dict[str, Any]:
        """Returns the entries of `run.json` about the weights that a run was started from."""
        return {
            "origin": str(self),
            "origin_digest": self.digest,
            "origin_positions": self.trained_positions,
        }

    def load(self, model, with_head=False, heads=()) -> LoadReport:
        """Assigns the encoder's weights to a model, all or none; see `load_encoder`.

        With `with_head` a model of the same class keeps its head, of other labels by their names.
        """
        if self.tensors is None:
            return report_random(model)
        known, labels = self.record, ()
        with_head = with_head and known is not None and known.model_class is type(model)
        if with_head:
            labels = tuple(known.config.get("labels", ()))
        return load_encoder(self.tensors, model, str(self), with_head, heads, labels)

    def build(self, dtype: str | None = None, sequence_length: int | None = None) -> Any:
        """Builds the model that is stored here, of its class, with its head and preprocessor.

        Call it in the scope of a strategy if the model is to run under one.

        Args:
            dtype: str or None. The precision; None is that of the stored model.
            sequence_length: int or None. Tokens to which longer texts are truncated; None likewise.

        Returns:
            A Keras model with all its weights, not compiled.

        Raises:
            InputError: If only weights are stored here, or they are damaged; or if the model has
                fewer positions than `sequence_length`.
        """
        if self.record is None:
            raise InputError(
                f"`{self.path}` has weights alone, without the class and the settings of a model. "
                "Give it to `from_preset` of a class, such as `AlbertForClassification`."
            )
        if isinstance(self.tensors, KerasFile):
            return with_changes(self.tensors.load(), dtype, sequence_length)
        config = self.record.changed(dtype, sequence_length).config
        if self.record.preprocessor is not None:
            config["preprocessor"] = config["preprocessor"] | {"tokenizer": self.tokenizer}
        with loaded_afterwards(self.tensors.shapes):
            model = self.record.model_class.from_config(config)
        assign_all(self.tensors, weight_names(model), self.path)
        return model

    def extended(self, tokenizer) -> "OpenedModel":
        """Returns the same weights with rows for the larger vocabulary of a tokenizer.

        It must extend the present one, or InputError is raised; for the rows see `extend_rows`.
        """
        # Here, as only it needs what trains vocabularies.
        from data_pipeline.tokenizers.vocabulary_extension import segments_of_added

        segments, size = segments_of_added(self.tokenizer, tokenizer), tokenizer.vocab_size
        extend = functools.partial(extend_rows, segments=segments)
        changed = self._changed(dict.fromkeys(PER_PIECE, extend), vocab_size=size)
        return dataclasses.replace(changed, _tokenizer=tokenizer)

    @property
    def trained_positions(self) -> int:
        """Longest sequence in training, in tokens, as far as it is known; 0 for random weights.

        It includes the training of earlier weights that these weights were started from.
        """
        if self.tensors is None:
            return 0
        longest = self.albert_config.max_position_embeddings
        return min(max(self.sequence_length or longest, self.origin_positions), longest)

    def lengthened(self, positions: int | None) -> "OpenedModel":
        """Returns the same weights for sequences of so many tokens; None changes nothing.

        New positions, and positions that were never trained, are copies of trained ones, see
        `copied_positions`.

        Raises:
            InputError: If there are more positions than `positions`, or too few were trained.
        """
        shape = self.albert_config
        if positions is None:
            return self
        is_too_short = self.tensors is not None and self.trained_positions < 3
        if positions < shape.max_position_embeddings or is_too_short:
            raise InputError(
                "`max_position_embeddings` must be at least as large as in the weights of "
                f"`{self}`, {shape.max_position_embeddings}. Received: {positions}."
            )
        seen, offset = self.trained_positions, shape.position_offset
        if positions == seen:
            return self
        rows = operator.itemgetter(copied_positions(seen, positions, offset))
        return self._changed({POSITIONS: rows}, max_position_embeddings=positions)

    def with_padding_at(self, pad_id: int) -> "OpenedModel":
        """Moves the positions so that padding has the row whose number is `pad_id`.

        This is how transformers finds the rows of positions that count real tokens only. Rows that
        no position reads are removed or added; a model without an offset of positions stays as it
        is.
        """
        offset = self.albert_config.position_offset
        shift = offset - (pad_id + 1)
        if not offset or not shift:
            return self

        def moved(table):
            unread = np.zeros((max(0, -shift), table.shape[1]), table.dtype)
            return np.concatenate([unread, table[max(0, shift) :]])

        return self._changed({POSITIONS: moved}, position_offset=pad_id + 1)

    def with_rotary_positions(self) -> "OpenedModel":
        """Returns the same weights for a model whose positions are rotary.

        The table of absolute positions is discarded. Training must continue: the model first has to
        learn to read positions from the rotated queries and keys.
        """
        if self.albert_config.position_embedding == "rotary":
            return self
        rotary: dict[str, Any] = {"position_embedding": "rotary", "position_offset": 0}
        return self._changed({POSITIONS: None}, **rotary)

    def _changed(self, changes, **shape):
        """Returns the same weights with changes: by name what makes the new array of the old one,
        or None to leave a tensor out. Training state, which is large, is left out in any case.
        """
        config, tensors = self.albert_config.replace(**shape), self.tensors
        if tensors is not None:
            arrays = self.arrays
            for name in changes.keys() & arrays.keys():
                change, array = changes[name], arrays.pop(name)
                if change is not None:
                    arrays[name] = change(array)
            tensors = ArrayTensors(arrays)
        return dataclasses.replace(self, tensors=tensors, albert_config=config, record=None)
