"""Modules of TensorFlow Hub: both formats are read, TensorFlow 2's is written.

No graph of a module is loaded or run, only the numbers beside it. A module of the TensorFlow 1
format cannot be written: it is made of graphs that TensorFlow 1 alone traces. Those made here load
with `hub.KerasLayer`, and `hub.load`, instead.
"""

import logging
import re
from pathlib import Path

from albert_keras.config import AlbertConfig
from albert_keras.interop.checkpoint_files import is_object_based, read_tokenizer_files
from albert_keras.interop.google_checkpoint import read_model_tensors, read_reference_tensors
from albert_keras.interop.hub_shape import shape_of_release
from albert_keras.interop.hub_writing import write_module
from albert_keras.interop.model_weights import ModelWeights
from albert_keras.interop.object_checkpoint import read_named_tensors
from albert_keras.interop.reference_shapes import encoder_shapes, head_shapes
from albert_keras.interop.tensor_table import read_by_table
from albert_keras.interop.tf_models import TABLE
from data_pipeline.errors import InputError

NAME = "tf-hub"
CONFIG = "albert_config.json"
_GRAPHS = ("saved_model.pb", "tfhub_module.pb")
#: Their head's names begin with that of the model it was trained in.
_HEAD = re.compile(r"(?:[^/]+/)?cls/predictions/(.+)")

logger = logging.getLogger(__name__)


def is_source(path):
    """Tells whether a path looks like the folder of a module; an export of ours is none."""
    path = Path(path)
    has_graph = any((path / name).is_file() for name in _GRAPHS)
    has_tensors = (path / "variables" / "variables.index").is_file()
    return has_graph and has_tensors and not (path / "export.json").exists()


def read(path, trust_pickle=False, config=None):
    """Reads a module: its variables, its tokenizer; nothing of it is run.

    Args:
        path: str or Path. Folder with `variables/`, of either format.
        trust_pickle: bool. Not needed.
        config: str, Path or None. An `albert_config.json`; None takes the one in `assets/`, in the
            folder or above, else the released model of the same sizes.

    Returns:
        ModelWeights.

    Raises:
        InputError: If it is none, its shape is not told, or tensors are not those of its shape.

    Source:
        google-research/albert, `export_to_tfhub.py`; tensorflow/models, `albert_encoder.py` and
        `export_tfhub_lib.py`.
    """
    path = Path(path)
    if not is_source(path):
        raise InputError(
            f"`{path}` should be the folder of a TensorFlow Hub module, with `saved_model.pb` and "
            "`variables/variables.index`. Received: no such folder."
        )
    prefix = str(path / "variables" / "variables")
    of_objects = is_object_based(prefix)
    tensors = read_named_tensors(prefix) if of_objects else read_model_tensors(prefix)
    of_models = "word_embeddings/embeddings" in tensors  # tensorflow/models, as albert_en_*
    if of_models:
        tensors = {_HEAD.sub(r"bert/cls/predictions/\1", name): a for name, a in tensors.items()}
    named = _renamed(TABLE, tensors) if of_models else tensors
    config_path = config or _find_config(path)
    if config_path is not None:
        config = AlbertConfig.from_reference_json(config_path)
    else:
        config = shape_of_release(named, path)
        logger.info("%s does not tell its shape; it is that of a released model: %s", path, config)
    if of_models:
        shapes = encoder_shapes(config) | head_shapes(config, named)
        found = read_by_table(TABLE, tensors, shapes, path)
    else:
        found = read_reference_tensors(config, tensors, path)
    return ModelWeights(
        config=config,
        tensors=found,
        source=str(path),
        tokenizer_files=read_tokenizer_files(path / "assets", path),
    )


def write(weights, folder):
    """Writes a SavedModel that `hub.KerasLayer` loads, for use and for fine-tuning.

    It takes a dict of int32 [B, S] `input_word_ids`, `input_mask`, `input_type_ids`, and returns
    `pooled_output` (also as `default`) [B, H], `sequence_output` [B, S, H] and `encoder_outputs`,
    the output of each block. With a masked-LM head there is `mlm`, which takes
    `masked_lm_positions` [B, P] besides and returns `mlm_logits` [B, P, V]. Other heads are in its
    variables.

    Args:
        weights: ModelWeights.
        folder: str or Path. An empty folder.

    Raises:
        InputError: If a tensor is missing or of another shape.
        OSError: If it cannot be written.
    """
    tensors = read_reference_tensors(weights.config, weights.tensors, weights.source)
    write_module(weights._replace(tensors=tensors), Path(folder))


def _find_config(path):
    for place in (path / "assets", path, path.absolute().parent):
        if (place / CONFIG).is_file():
            return place / CONFIG
    return None


def _renamed(table, tensors):
    """Returns tensors under our names, in their layout."""
    return {row.ours: tensors[row.theirs] for row in table if row.theirs in tensors}
