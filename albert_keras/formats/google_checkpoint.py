"""Writes checkpoints of google-research/albert so that its code reads them; `own` reads them."""

import logging
from pathlib import Path

from albert_keras.config import LATER_FIELDS, AlbertConfig
from albert_keras.formats.detection import ALBERT_CONFIG
from albert_keras.formats.model_weights import (
    albert_sharing,
    check_expressible,
    groups_are_rounded_alike,
)
from albert_keras.formats.vocabulary import write_files
from albert_keras.runs.tensors import write_tensors
from data_pipeline.files import write_json

#: Prefix of the checkpoint in a release.
CHECKPOINT = "model.ckpt-best"
#: What `modeling.py` there can run.
ACTIVATIONS = ("gelu", "relu", "tanh", "linear")

logger = logging.getLogger(__name__)


def write(weights, folder):
    """Writes a release of google-research/albert; see `formats`."""
    values = reference_config(weights.config)
    write_tensors(Path(folder, CHECKPOINT), weights.tensors)
    write_json(Path(folder, ALBERT_CONFIG), values)
    write_files(folder, weights.tokenizer_files)


def warn_about_groups(config: AlbertConfig, source: str):
    """Warns where the reference would run other layers than our model."""
    if not groups_are_rounded_alike(config):
        logger.warning(
            "%s: with %s layers in %s groups, the reference uses different groups at some depths "
            "than this package, because of a rounding error. Outputs will differ.",
            source,
            config.num_hidden_layers,
            config.num_hidden_groups,
        )


def reference_config(config: AlbertConfig) -> dict:
    """Returns the values of an `albert_config.json` that describes the same model in the reference.

    Without any sharing each depth is a group of its own there, with the same names. InputError
    names everything that the reference cannot express.
    """
    values = config.to_dict()
    for name in ("foreign_keys", *LATER_FIELDS):
        values.pop(name, None)
    if values.pop("sharing") == "none":
        values["num_hidden_groups"] = config.num_hidden_layers
    allowed = albert_sharing(config) | {"hidden_act": ACTIVATIONS}
    if config.embedding_size == config.hidden_size:
        allowed["embedding_projection"] = "auto"
    check_expressible("google-research/albert", config, allowed)
    return values
