"""KerasNLP's ALBERT models in memory, to and from ours. For its folders see `keras_nlp_preset.py`.

KerasNLP is imported inside the functions: nobody else has to load it. Written for version 0.12.1,
whose blocks keep their parts in private attributes and whose weight names are not unique.
"""

import logging

from albert_keras.interop.keras_nlp_config import ARGUMENTS, arguments_of, config_of
from albert_keras.interop.keras_nlp_tables import from_theirs, rows_of, to_theirs
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.pretraining import AlbertForPretraining
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)


def from_keras_nlp(model):
    """Returns a model of ours with the weights of a KerasNLP model.

    KerasNLP's masked-LM head adds 1e-5 to the variance it divides by, where we add 1e-12: its
    scores differ by a share of about 5e-6 / variance.

    Args:
        model: keras_nlp.models.AlbertBackbone or keras_nlp.models.AlbertMaskedLM.

    Returns:
        AlbertEncoder, or AlbertForPretraining without a sentence-order head; with the model's dtype
        policy and dropout.

    Raises:
        InputError: If the model is of another kind, or a weight is not finite.
    """
    import keras_nlp

    has_head = isinstance(model, keras_nlp.models.AlbertMaskedLM)
    backbone = model.backbone if has_head else model
    if not isinstance(backbone, keras_nlp.models.AlbertBackbone):
        raise InputError(
            "`model` should be an AlbertBackbone or AlbertMaskedLM. "
            f"Received: {type(model).__name__}."
        )
    config = config_of({name: getattr(backbone, name) for name in (*ARGUMENTS, "dropout")})
    rows = rows_of(config, has_head)
    theirs = {row.theirs: _weight(model, row.theirs).numpy() for row in rows}
    config, tensors = from_theirs(config, rows, theirs, type(model).__name__)
    policy = backbone.token_embedding.dtype_policy
    if has_head:
        ours = AlbertForPretraining(config, sentence_head=False, dtype=policy)
    else:
        ours = AlbertEncoder(config, dtype=policy)
    for weight in ours.weights:
        weight.assign(tensors[weight.name.removesuffix(":0")])
    return ours


def to_keras_nlp(model):
    """Returns a KerasNLP model with the weights of one of ours.

    For the scores of the head see `from_keras_nlp`.

    Args:
        model: AlbertEncoder or AlbertForPretraining.

    Returns:
        keras_nlp.models.AlbertBackbone, or keras_nlp.models.AlbertMaskedLM without the
        sentence-order head, which has no place there (a warning is logged); with the model's dtype
        policy.

    Raises:
        InputError: If it is another model, or the backbone cannot express it: another activation
            than "gelu", other sharing than "all", two different dropouts, or groups of unequal
            depth.
    """
    import keras_nlp

    if not isinstance(model, AlbertEncoder | AlbertForPretraining):
        raise InputError(
            "`model` should be an AlbertEncoder or AlbertForPretraining. "
            f"Received: {type(model).__name__}."
        )
    has_head = isinstance(model, AlbertForPretraining)
    encoder = model.encoder if has_head else model
    arguments = arguments_of(encoder.config)
    theirs = keras_nlp.models.AlbertBackbone(dtype=encoder.dtype_policy, **arguments)
    theirs = keras_nlp.models.AlbertMaskedLM(theirs) if has_head else theirs
    if has_head and model.sentence_order_head is not None:
        logger.warning("KerasNLP has no place for the sentence-order head: it is left out.")
    rows = rows_of(encoder.config, has_head)
    wanted = {row.ours for row in rows}
    named = {weight.name.removesuffix(":0"): weight for weight in model.weights}
    tensors = {name: weight.numpy() for name, weight in named.items() if name in wanted}
    for name, array in to_theirs(encoder.config, rows, tensors).items():
        _weight(theirs, name).assign(array)
    return theirs


def _weight(model, path):
    """Returns the variable of a KerasNLP model that a table calls `path`."""
    *way, _, number = path.split("/")
    place = model if way[0] == "masked_lm_head" else getattr(model, "backbone", model)
    for part in way:
        place = place[int(part)] if part.isdecimal() else getattr(place, part)
    return place.weights[int(number)]
