"""Where `from_preset` finds weights and tokenizers: the only place where models look upwards.

Keras users expect `from_preset` and `answer` on the class, and what reads a folder or names the
answers of a task builds models. So this module imports the others, and only when it is called.
"""

import inspect
from pathlib import Path
from typing import Any

from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer


def open_preset(source: Any, step: int | str | None = None) -> Any:
    """Returns weights, shape and tokenizer of a source: an OpenedModel.

    Args:
        source: As `path` of `open_weights`; an OpenedModel is returned as it is.
        step: Checkpoint of a run, or "best"; None means the newest valid one.

    Raises:
        InputError: If there is no such model, or it is damaged.
    """
    from albert_keras.formats.open_weights import open_weights
    from albert_keras.formats.opened_model import OpenedModel

    return source if isinstance(source, OpenedModel) else open_weights(source, step)


def open_tokenizer(source: Any) -> Tokenizer:
    """Returns a tokenizer, or the tokenizer of a source; raises InputError if it has none."""
    from albert_keras.formats.vocabulary import load_tokenizer

    return source if isinstance(source, Tokenizer) else load_tokenizer(source)


def open_text_model(
    model_class: Any,
    source: Any,
    labels: Any = None,
    sequence_length: int | None = None,
    load_weights: bool = True,
    step: int | str | None = None,
    **kwargs: Any,
) -> Any:
    """Does what `AlbertForTexts.from_preset` does, for one of its subclasses."""
    if labels is not None and not model_class.has_labels:
        raise InputError(f"`labels` must not be given: {model_class.__name__} has none.")
    if "preprocessor" in kwargs:
        raise TypeError(
            "`preprocessor` must not be given to `from_preset`, which makes the one of the source. "
            "Give its arguments, such as `sequence_length`."
        )
    trained = None
    if load_weights and isinstance(source, str | Path):
        from albert_keras.formats.detection import detect

        source = detect(source)
        if source.kind == "keras" or source.run_kind == "finetuning":
            from albert_keras.tasks.finetuned import open_text_model_of

            trained = open_text_model_of(source, step, kwargs.get("dtype"))
    if type(trained) is model_class and _has_labels(trained, labels):
        if others := sorted(kwargs.keys() - {"dtype"}):
            raise InputError(
                f"`{others[0]}` must not be given: `{source}` is trained for this, and the model "
                "has the settings of its training."
            )
        if sequence_length is not None:
            _check_length(sequence_length, trained.config.max_position_embeddings)
            changed = trained.preprocessor.get_config() | {"sequence_length": sequence_length}
            trained.preprocessor = model_class.preprocessor_class.from_config(changed)
        return trained
    weights = open_preset(source, step)
    longest = weights.albert_config.max_position_embeddings
    if sequence_length is not None:
        _check_length(sequence_length, longest)
    known = inspect.signature(model_class.preprocessor_class.__init__).parameters
    own = kwargs.keys() & known.keys() - {"kwargs", "name", "dtype"}
    preprocessor = model_class.preprocessor_class(
        weights.tokenizer,
        sequence_length or min(model_class.usual_length, longest),
        **{name: kwargs.pop(name) for name in own},
    )
    named = {"labels": labels} if model_class.has_labels else {}
    model = model_class(weights.albert_config, preprocessor=preprocessor, **named, **kwargs)
    if load_weights:
        weights.load(model)
    return model


def _has_labels(model, labels):
    """Returns whether a model has the labels that were given, names or their number."""
    if isinstance(labels, int):
        return len(model.labels) == labels
    return labels is None or tuple(map(str, labels)) == tuple(model.labels)


def _check_length(length, longest):
    if length > longest:
        raise InputError(
            "`sequence_length` must not exceed `max_position_embeddings` of the model, "
            f"{longest}. Received: {length}."
        )
