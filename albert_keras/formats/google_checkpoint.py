"""Writes checkpoints of google-research/albert so that its code reads them; `own` reads them."""

from pathlib import Path

from albert_keras.config import LATER_FIELDS, AlbertConfig
from albert_keras.formats.detection import ALBERT_CONFIG
from albert_keras.formats.model_weights import albert_sharing, check_expressible
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.runs.tensors import write_tensors
from data_pipeline.files import write_json

#: Prefix of the checkpoint in a release.
CHECKPOINT = "model.ckpt-best"
#: What `modeling.py` there can run.
ACTIVATIONS = ("gelu", "relu", "tanh", "linear")


def write(model: OpenedModel, folder: Path):
    """Writes a release of google-research/albert; see `formats`."""
    values = reference_config(model.albert_config)
    write_tensors(folder / CHECKPOINT, model.arrays)
    write_json(folder / ALBERT_CONFIG, values)


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
