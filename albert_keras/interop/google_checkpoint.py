"""Checkpoints of google-research/albert: read, and written so that its code reads them."""

import json
import logging
from pathlib import Path

from albert_keras.config import AlbertConfig
from albert_keras.interop.checkpoint_files import (
    find_beside,
    find_prefix,
    find_prefixes,
    is_object_based,
    read_tokenizer_files,
)
from albert_keras.interop.checkpoint_tensors import (
    CheckpointTensors,
    is_training_state,
    write_tensors,
)
from albert_keras.interop.model_weights import ModelWeights
from albert_keras.interop.norm_aliases import without_aliases
from albert_keras.interop.reference_shapes import check_expressible, encoder_shapes, head_shapes
from albert_keras.interop.tensor_table import Row, read_by_table
from data_pipeline.errors import InputError

NAME = "google"
#: What a release consists of.
CHECKPOINT, CONFIG = "model.ckpt-best", "albert_config.json"
_SENTENCE_PIECE, _WORD_PIECE = "30k-clean.model", "vocab_chinese.txt"
_ACTIVATIONS = ("gelu", "relu", "tanh", "linear")

logger = logging.getLogger(__name__)


def is_source(path):
    """Tells whether a path looks like a checkpoint of google-research/albert."""
    prefixes = find_prefixes(path)
    if not prefixes or is_object_based(prefixes[0]):
        return False
    return bool(find_beside(prefixes[0], CONFIG)) or not find_beside(
        prefixes[0], "bert_config.json"
    )


def read(path, trust_pickle=False, config=None):
    """Reads a checkpoint; training state in it is left.

    A square kernel that somebody transposed cannot be told by its shape.

    Args:
        path: str or Path. Prefix, one of the checkpoint's files, or a folder with one checkpoint.
        trust_pickle: bool. Not needed.
        config: str, Path or None. An `albert_config.json`; None takes the one in the checkpoint's
            folder or above.

    Returns:
        ModelWeights.

    Raises:
        InputError: If there is no checkpoint or no configuration, bytes are damaged, or the tensors
            are not those of the configuration: with all that are wrong.

    Source:
        google-research/albert, `modeling.py`, `run_pretraining.py`, `classifier_utils.py`,
        `squad_utils.py`, `race_utils.py`.
    """
    prefix = find_prefix(path)
    config_path = config or find_beside(prefix, CONFIG)
    if config_path is None:
        raise InputError(
            f"The shape of the model in `{path}` should be told by `{CONFIG}` in its folder or "
            "above, or by `config`. Received: none of these."
        )
    config = AlbertConfig.from_reference_json(config_path)
    if not groups_are_as_in_the_reference(config):
        logger.warning(
            "%s: with %s layers in %s groups the reference runs other groups at some depths than "
            "we do, by an error of rounding; outputs will differ.",
            path,
            config.num_hidden_layers,
            config.num_hidden_groups,
        )
    tensors = read_model_tensors(prefix)
    return ModelWeights(
        config=config,
        tensors=read_reference_tensors(config, tensors, path),
        source=str(path),
        tokenizer_files=read_tokenizer_files(Path(prefix).parent, Path(config_path).parent),
    )


def write(weights, folder):
    """Writes a release of google-research/albert.

    Args:
        weights: ModelWeights.
        folder: str or Path. An empty folder.

    Raises:
        InputError: If the reference cannot have such a model, or a tensor is missing.
        OSError: If it cannot be written.
    """
    folder, config = Path(folder), weights.config
    tensors = read_reference_tensors(config, weights.tensors, weights.source)
    values = reference_config(config)
    files = release_files(weights.tokenizer_files, _WORD_PIECE)
    write_tensors(folder / CHECKPOINT, tensors)
    (folder / CONFIG).write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
    for name, content in files.items():
        (folder / name).write_bytes(content)


def read_model_tensors(prefix):
    """Reads all tensors of a checkpoint but training state: dict of reference's name -> array.

    Raises:
        InputError: If it cannot be read.
    """
    stored = CheckpointTensors(prefix)
    left = set(filter(is_training_state, stored.shapes))
    if left:
        logger.info("Left in `%s`: %s", prefix, ", ".join(sorted(left)))
    names = without_aliases(stored.shapes.keys() - left, prefix)
    return {ours: stored.read(theirs) for ours, theirs in names.items()}


def read_reference_tensors(config, tensors, source):
    """Checks tensors named as in the reference: dict of name -> float32 array.

    Raises:
        InputError: With all that are missing, not wanted or of another shape.
    """
    shapes = encoder_shapes(config) | head_shapes(config, tensors)
    return read_by_table([Row(name, name) for name in shapes], tensors, shapes, source)


def reference_config(config):
    """Returns the values of an `albert_config.json` whose model is the same in the reference.

    Without any sharing each depth is a group of its own there, of the same names.

    Raises:
        InputError: With all that the reference cannot have.
    """
    values = config.to_dict()
    foreign = values.pop("foreign_keys", ())
    if values.pop("sharing") == "none":
        values["num_hidden_groups"] = config.num_hidden_layers
    values.pop("embedding_projection", None)
    needed = config.embedding_size != config.hidden_size
    rules = (
        ("sharing", config.sharing in ("all", "none"), '"all" or "none"', config.sharing),
        ("hidden_act", config.hidden_act in _ACTIVATIONS, str(_ACTIVATIONS), config.hidden_act),
        (
            "num_hidden_groups",
            groups_are_as_in_the_reference(config),
            "another number, since the reference rounds wrongly and skips a group",
            values["num_hidden_groups"],
        ),
        (
            "embedding_projection",
            config.projects_embeddings == needed,
            '"auto"',
            config.embedding_projection,
        ),
    )
    check_expressible("google-research/albert", rules)
    ours = {name: value for name, value in values.items() if name not in foreign}
    return ours | {name: values[name] for name in foreign}


def groups_are_as_in_the_reference(config):
    """Tells whether the reference, which divides in floats, runs the same group at each depth."""
    layers = config.num_hidden_layers
    groups = layers if config.sharing == "none" else config.num_hidden_groups
    return all(int(depth / layers * groups) == depth * groups // layers for depth in range(layers))


def release_files(files, word_piece):
    """Names a tokenizer's files as Google's releases do.

    Args:
        files: dict of name -> bytes.
        word_piece: str. What they call the vocabulary of a WordPiece tokenizer.

    Returns:
        dict of name -> bytes.

    Raises:
        InputError: If two files would have one name.
    """
    named = {}
    for name, content in files.items():
        if name.endswith(".model"):
            released = _SENTENCE_PIECE
        elif name.startswith("vocab") and name.endswith(".txt"):
            released = word_piece
        else:
            released = name
        if released in named:
            raise InputError(
                f"A release should have one `{released}`. Received: {', '.join(files)}."
            )
        named[released] = content
    return named
