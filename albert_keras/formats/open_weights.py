"""Opens a trained model: weights with their shape, tokenizer and task.

They belong together: weights used with another vocabulary or another number of heads load without
an error and produce nonsense.
"""

import dataclasses
import importlib
from pathlib import Path
from types import ModuleType

from albert_keras.config import AlbertConfig, check_same_shape
from albert_keras.formats import own
from albert_keras.formats.detection import (
    ALBERT_CONFIG,
    FORMATS,
    OURS,
    Place,
    detect,
)
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.formats.vocabulary import load_tokenizer, stored_tokenizer
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Formats whose weights `own.find_weights` finds.
_WITH_OUR_NAMES = (OURS, "google")


def open_weights(
    path: str | Path | Place | OpenedModel | None = None,
    step: int | str | None = None,
    albert_config: str | Path | AlbertConfig | None = None,
    tokenizer: str | Path | Tokenizer | None = None,
) -> OpenedModel:
    """Opens what is at a path: weights together with their shape, tokenizer and task.

    The weights are read when they are used; those of another library are converted at once.

    Args:
        path: str, Path or None. Folder of a run, of a fine-tuning, which means its best run, or of
            a checkpoint; prefix of a TensorFlow checkpoint with the reference's names (with or
            without `.index`, and `module/` before all names); an export or one of its versions;
            the name of a shipped model or, as `hf://OWNER/NAME[@REVISION]`, of one of the hub of
            Hugging Face, which is downloaded; a `.keras` file of this package; a folder of Hugging
            Face, of google-research/bert or of KerasNLP. None or "random" for random weights. An
            OpenedModel is returned as it is.
        step: int, "best" or None. Checkpoint of a run; None means the newest valid one, and of a
            fine-tuned run the best one.
        albert_config: A JSON file or a name such as "albert-base". None takes the one stored beside
            the weights; a given one may differ from it in dropout and attention only.
        tokenizer: A tokenizer or a model, see `load_tokenizer`; None takes the one stored
            beside the weights.

    Returns:
        OpenedModel.

    Raises:
        InputError: If there is no model, weights or shape are missing or damaged, or they and the
            tokenizer do not fit together.

    Example:
        model = open_weights("albert-mini-en")
        model.kind, model.albert_config.hidden_size, model.tokenizer.encode("The ship sailed.")
        model.build()  # the Keras model
    """
    if isinstance(path, OpenedModel):
        return path
    place = None if path is None or str(path) == "random" else detect(path)
    name = "random" if place is None else str(place)
    if step is not None and (place is None or place.kind not in ("run", "fine-tuning")):
        raise InputError(
            f"`step` applies to the folder of a run only. Received: step {step} of `{name}`."
        )
    if tokenizer is not None:
        tokenizer = load_tokenizer(tokenizer)
    elif place is not None:
        tokenizer = stored_tokenizer(place)
    size = None if tokenizer is None else tokenizer.vocab_size
    if place is None:
        found = OpenedModel()
    elif place.format in _WITH_OUR_NAMES:
        found = own.find_weights(place, step)
    else:
        found = format_module(place.format).read(place.path)
        found = dataclasses.replace(found, kind=place.kind, place=place.path)
    shape = _shape(name, place, found, albert_config, size)
    found = dataclasses.replace(found, path=name, albert_config=shape, _tokenizer=tokenizer)
    if tokenizer is None:
        return found
    if found.tokenizer_digest not in (None, tokenizer.digest):
        raise InputError(
            f"The digest of the tokenizer for `{name}` must be {found.tokenizer_digest}, as in its "
            f"training. Received: {tokenizer.digest}."
        )
    if size != shape.vocab_size:
        raise InputError(
            f"The tokenizer of `{name}` must have {shape.vocab_size:,} pieces, the `vocab_size` of "
            f"its albert_config. Received: {size:,}."
        )
    return found


def format_module(name: str) -> ModuleType:
    """Returns the module of one of `FORMATS`, with `read` and `write`."""
    return importlib.import_module(FORMATS[name])


def _shape(name, place, found, given, vocab_size):
    """Returns the AlbertConfig: the stored one, or a given one, which must agree with it."""
    stored = found.albert_config
    if stored is None and place is not None:
        files = (folder / ALBERT_CONFIG for folder in place.folders)
        file = next((file for file in files if file.is_file()), None)
        stored = None if file is None else AlbertConfig.from_reference_json(file)
    if given is None:
        if stored is None:
            raise InputError(
                f"`{name}` has no albert_config. Pass a JSON file or the name of a size as "
                "`albert_config`; a checkpoint of google-research/bert needs its "
                "bert_config.json beside it."
            )
        return stored
    if isinstance(given, AlbertConfig):
        shape = given
    elif Path(given).is_file() or str(given).endswith(".json"):
        shape = AlbertConfig.from_reference_json(str(given))
    else:
        size = {} if vocab_size is None else {"vocab_size": vocab_size}
        shape = AlbertConfig.from_name(str(given), **size)
    if stored is not None:
        check_same_shape({"`albert_config`": shape, f"`{name}`": stored}, f"`{name}`")
    return shape
