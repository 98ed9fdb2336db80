"""Where a fine-tuning begins: a run, a checkpoint, an export, a `.keras` file or random weights.

Each of them comes with the shape of its model and its tokenizer, and none of the three goes without
the others: weights under another vocabulary, or run with another number of heads, load without a
word and answer nonsense.
"""

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from albert_keras.config import FREE_SETTINGS, AlbertConfig
from albert_keras.interop.model_weights import HEADS
from albert_keras.models.vocabulary_extension import ExtendedTensors
from albert_keras.weights.find import find_weights
from albert_keras.weights.load_report import LoadReport, load_encoder, report_random
from albert_keras.weights.source_tensors import encoder_digest
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_extension import segments_of_added

_SHAPE = "albert_config.json"


@dataclass(frozen=True)
class InitialWeights:
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

    @functools.cached_property
    def heads(self):
        """tuple of str. Which of `HEADS` in `interop/model_weights.py` the weights have."""
        names = () if self._open is None else self._open().shapes
        return tuple(
            head for head, starts in HEADS.items() if any(name.startswith(starts) for name in names)
        )

    def load(self, model, with_head=False, heads=()) -> LoadReport:
        """Assigns the encoder's weights to those of a model, all or none; see `load_encoder`.

        Raises:
            InputError: With all tensors that do not fit; the model is as it was then.
        """
        if self._open is None:
            return report_random(model)
        return load_encoder(self._open(), model, str(self), with_head, heads)

    def extended(self, tokenizer) -> "InitialWeights":
        """Returns the same weights with rows for a larger vocabulary.

        Args:
            tokenizer: Tokenizer. Its first pieces are those of this one; see `ExtendedTensors` for
                the rows of the others.

        Raises:
            InputError: If it does not go on from this one's pieces.
        """
        segments = segments_of_added(self.tokenizer, tokenizer)
        return dataclasses.replace(
            self,
            albert_config=self.albert_config.replace(vocab_size=tokenizer.vocab_size),
            tokenizer=tokenizer,
            tokenizer_folder=None,
            _open=lambda: ExtendedTensors(self._open(), segments),
        )


def open_weights(path=None, step=None, albert_config=None, tokenizer=None) -> InitialWeights:
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
        InitialWeights.

    Raises:
        InputError: If there is nothing of the kind, it is damaged, its shape or tokenizer is not
            found, or these contradict each other.
    """
    name = "random" if path is None else str(path)
    found = None if name == "random" else find_weights(Path(path), step)
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
        return InitialWeights(name, "random", None, shape, tokenizer, folder, None)
    return InitialWeights(name, found.kind, found.step, shape, tokenizer, folder, found.open)


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
            if key not in FREE_SETTINGS and value != getattr(other, key)
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
            raise InputError(
                f"`{name}` comes without a tokenizer: give a folder, a .model file or a vocab.txt."
            )
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
        models = sorted([*folder.glob("*.model"), *folder.glob("vocab*.txt")])
        if len(models) > 1:
            listing = ", ".join(path.name for path in models)
            raise InputError(f"`{folder}` holds several tokenizers. Give one of them: {listing}.")
        if models:
            return models[0]
    return None
