"""Opens a trained model: weights with their shape, tokenizer and task.

They belong together: weights used with another vocabulary or another number of heads load without
an error and produce nonsense.
"""

import dataclasses
import importlib
import logging
from pathlib import Path
from types import ModuleType

from albert_keras.config import AlbertConfig, check_same_shape
from albert_keras.formats import own
from albert_keras.formats.detection import (
    ALBERT_CONFIG,
    CONVERSION_RECORD,
    FORMATS,
    OURS,
    RUN_RECORD,
    Place,
    detect,
    read_conversion_record,
)
from albert_keras.formats.model_weights import groups_are_rounded_alike
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.formats.vocabulary import (
    Vocabulary,
    check_digest,
    stored_vocabulary,
    vocabulary_at,
)
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Settings of a shape that no tensor shows, and that formats have in common.
_CONVERTED = ("num_hidden_layers", "num_attention_heads", "hidden_act", "layer_norm_epsilon")
#: Formats whose weights `own.find_weights` finds.
_WITH_OUR_NAMES = (OURS, "google")

logger = logging.getLogger(__name__)


def open_weights(
    path: str | Path | Place | None = None,
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
            Face, of google-research/bert or of KerasNLP. None or "random" for random weights.
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
    """
    place = None if path is None or str(path) == "random" else detect(path)
    name = "random" if place is None else str(place)
    if step is not None and (place is None or place.kind not in ("run", "fine-tuning")):
        raise InputError(
            f"`step` applies to the folder of a run only. Received: step {step} of `{name}`."
        )
    is_ours = place is not None and place.format in _WITH_OUR_NAMES
    found, shapes = OpenedModel(), {}
    if place is not None and is_ours:
        found, shapes = own.find_weights(place, step), _shapes_beside(place)
    vocabulary = _given(tokenizer)
    if vocabulary is None and place is not None:
        vocabulary = stored_vocabulary(place)
    if place is not None and not is_ours:
        found = _converted(name, place, vocabulary)
    if found.albert_config is not None:
        shapes = {f"`{name}`": found.albert_config} | shapes
    shape = _shape(name, shapes, albert_config, vocabulary and vocabulary.tokenizer.vocab_size)
    if place is not None and place.format == "google" and not groups_are_rounded_alike(shape):
        logger.warning(
            "%s: with %s layers in %s groups, the reference uses different groups at some depths "
            "than this package, because of a rounding error. Outputs will differ.",
            name,
            shape.num_hidden_layers,
            shape.num_hidden_groups,
        )
    known = {"path": name, "albert_config": shape}
    record = read_conversion_record(place.path) if place is not None else {}
    _check_conversion(name, record, found, shape)
    if vocabulary is not None:
        check_digest(name, vocabulary, found.tokenizer_digest)
        if (pieces := vocabulary.tokenizer.vocab_size) != shape.vocab_size:
            raise InputError(
                f"The tokenizer of `{name}` must have {shape.vocab_size:,} pieces, the "
                f"`vocab_size` of its albert_config. Received: {pieces:,}."
            )
        known |= {"_tokenizer": vocabulary.tokenizer, "tokenizer_source": vocabulary.source}
        known["notes"] = (*found.notes, *vocabulary.notes)
    return dataclasses.replace(found, **known)


def _check_conversion(name, record, found, shape):
    """Raises InputError unless a converted model is the one that its `conversion.json` describes.

    A run compares its weights and labels by its own digests and record.
    """
    pairs = {}
    if "albert_config" in record:
        converted = AlbertConfig.from_dict(record["albert_config"])
        pairs = {key: (getattr(converted, key), getattr(shape, key)) for key in _CONVERTED}
    if found.kind != "run":
        labels = tuple(record.get("labels") or ())
        pairs["labels"] = (labels, found.labels if labels and found.labels else labels)
        for key, attribute in (("encoder_digest", "digest"), ("weights_digest", "weights_digest")):
            if digest := record.get(key):
                pairs[key] = (digest, getattr(found, attribute))
    for key, (wanted, value) in pairs.items():
        if wanted != value:
            raise InputError(
                f"`{key}` of `{name}` must be {wanted!r}, as when it was converted. Received: "
                f"{value!r}. If you changed the model, remove its {CONVERSION_RECORD}; otherwise "
                "convert it again."
            )


def _shapes_beside(place):
    """Returns the shapes in files beside weights of ours, by the name of the file."""
    files = [folder / ALBERT_CONFIG for folder in place.folders]
    return {
        f"`{file}`": AlbertConfig.from_reference_json(file)
        for file in files
        # Opening a run compares its file with run.json; one of its checkpoints may be shallower.
        if file.is_file() and not (file.parent / RUN_RECORD).is_file()
    }


def _converted(name, place, vocabulary):
    model = format_module(place.format).read(place.path)
    if vocabulary is not None:
        model = model.without_padded_rows(vocabulary.tokenizer.vocab_size)
    logger.info(
        "`%s` was recognized as %s and is converted while loading: %s layers, hidden size %s, %s",
        name,
        place.format,
        model.albert_config.num_hidden_layers,
        model.albert_config.hidden_size,
        f"{vocabulary.tokenizer.vocab_size:,} pieces" if vocabulary else "no vocabulary read",
    )
    return dataclasses.replace(model, kind=place.kind, place=place.path)


def format_module(name: str) -> ModuleType:
    """Returns the module of one of `FORMATS`, with `read` and `write`."""
    return importlib.import_module(FORMATS[name])


def _shape(name, shapes, given, vocab_size):
    """Returns the AlbertConfig; if there are several sources, they must agree."""
    if isinstance(given, AlbertConfig):
        shapes = {"`albert_config`": given} | shapes
    elif given is not None:
        size = {} if vocab_size is None else {"vocab_size": vocab_size}
        is_file = Path(given).is_file() or str(given).endswith(".json")
        read = AlbertConfig.from_reference_json if is_file else AlbertConfig.from_name
        shapes = {f"`{given}`": read(str(given), **({} if is_file else size))} | shapes
    if not shapes:
        raise InputError(
            f"`{name}` has no albert_config. Pass a JSON file or the name of a size as "
            "`albert_config`; a checkpoint of google-research/bert needs its "
            "bert_config.json beside it."
        )
    check_same_shape(shapes, f"`{name}`")
    return next(iter(shapes.values()))


def _given(tokenizer) -> Vocabulary | None:
    """Returns the vocabulary that the caller gave, as an object or a path."""
    if tokenizer is None:
        return None
    is_object = isinstance(tokenizer, Tokenizer)
    return Vocabulary(tokenizer, "") if is_object else vocabulary_at(tokenizer)
