"""Checkpoints of google-research/albert: read, and written so that its code reads them."""

import logging
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from albert_keras.config import LATER_FIELDS, AlbertConfig
from albert_keras.formats.checkpoint_tensors import (
    CheckpointTensors,
    find_beside,
    find_checkpoint,
    find_prefixes,
    is_training_state,
)
from albert_keras.formats.model_folder import read_tokenizer_files, write_files, write_json
from albert_keras.formats.model_weights import ModelWeights, check_expressible, projection_rule
from albert_keras.formats.tensor_table import read_reference_tensors
from albert_keras.runs.tensors import write_tensors
from data_pipeline.errors import InputError

#: Files of a release.
CHECKPOINT, CONFIG = "model.ckpt-best", "albert_config.json"
BERT_CONFIG = "bert_config.json"
#: What `modeling.py` there can run.
ACTIVATIONS = ("gelu", "relu", "tanh", "linear")
_SENTENCE_PIECE, _WORD_PIECE = "30k-clean.model", "vocab_chinese.txt"
#: A normalization that a Keras layer has named, in checkpoints of modified copies of the reference.
_ALIAS = re.compile(r"(.*)/layer_normalization(?:_(\d+))?/(beta|gamma)")
_BLOCK = re.compile(r"bert/encoder/transformer/group_\d+/inner_group_\d+")
#: Scopes with one normalization; a block has two.
_SINGLE = {"bert/embeddings", "cls/predictions/transform", "end_logits"}

logger = logging.getLogger(__name__)


def is_source(path):
    """Returns whether a path looks like a checkpoint of google-research/albert."""
    prefixes = find_prefixes(path)
    return bool(prefixes) and (
        bool(find_beside(prefixes[0], CONFIG)) or not find_beside(prefixes[0], BERT_CONFIG)
    )


def read(path, trust_pickle=False, config=None):
    """Reads a checkpoint; see `formats`. Training state in it is skipped.

    The shape of a square kernel does not show whether it is transposed.

    Source:
        google-research/albert, `modeling.py`, `run_pretraining.py`, `classifier_utils.py`,
        `squad_utils.py`, `race_utils.py`.
    """
    prefix, config_path = find_checkpoint(path, config, CONFIG)
    config = AlbertConfig.from_reference_json(config_path)
    if not groups_are_as_in_the_reference(config):
        logger.warning(
            "%s: with %s layers in %s groups, the reference uses different groups at some depths "
            "than this package, because of a rounding error. Outputs will differ.",
            path,
            config.num_hidden_layers,
            config.num_hidden_groups,
        )
    return ModelWeights(
        config=config,
        tensors=read_reference_tensors(config, read_model_tensors(prefix), path),
        source=str(path),
        tokenizer_files=read_tokenizer_files(Path(prefix).parent, config_path.parent),
    )


def write(weights, folder):
    """Writes a release of google-research/albert; see `formats`."""
    values = reference_config(weights.config)
    tensors = read_reference_tensors(weights.config, weights.tensors, weights.source)
    files = release_files(weights.tokenizer_files, _WORD_PIECE)
    write_tensors(Path(folder, CHECKPOINT), tensors)
    write_json(Path(folder, CONFIG), values)
    write_files(folder, files)


def read_model_tensors(prefix: str) -> dict[str, np.ndarray]:
    """Reads all tensors of a checkpoint but training state, by the reference's names."""
    stored = CheckpointTensors(prefix)
    skipped = set(filter(is_training_state, stored.shapes))
    if skipped:
        logger.info("Skipped in `%s`: %s", prefix, ", ".join(sorted(skipped)))
    names = without_aliases(stored.shapes.keys() - skipped, prefix)
    return {ours: stored.read(theirs) for ours, theirs in names.items()}


def without_aliases(names: Iterable[str], source: str) -> dict[str, str]:
    """Maps the reference's name to the name in `source`, for normalizations that Keras has named.

    `layer_normalization`, `layer_normalization_1` and so on are numbered in the order in which the
    layers were created: within a block attention's comes first, then the feed-forward part's.
    InputError if it is ambiguous which is which.
    """
    matches = {name: _ALIAS.fullmatch(name) for name in names}
    found = {name: name for name, match in matches.items() if match is None}
    aliases = {name: match for name, match in matches.items() if match}
    numbers = {}
    for match in aliases.values():
        numbers.setdefault(match[1], set()).add(int(match[2] or 0))
    problems = []
    for scope, of_scope in numbers.items():
        expected = 1 if scope in _SINGLE else 2 if _BLOCK.fullmatch(scope) else 0
        if len(of_scope) != expected:
            problems.append(f"{scope}: {len(of_scope)} layer_normalization, expected {expected}")
        if any(name.startswith(f"{scope}/LayerNorm") for name in found):
            problems.append(f"{scope}: both LayerNorm and layer_normalization")
    if problems:
        listing = "\n  ".join(problems)
        raise InputError(
            f"`{source}` has normalizations named by Keras, and it is ambiguous which is which. In "
            "the reference, all depths of a group share one block with two normalizations; a copy "
            f"with its own normalizations at each depth is another model:\n  {listing}"
        )
    for name, match in aliases.items():
        is_second = sorted(numbers[match[1]]).index(int(match[2] or 0))
        found[f"{match[1]}/LayerNorm{'_1' if is_second else ''}/{match[3]}"] = name
    return found


def reference_config(config: AlbertConfig) -> dict:
    """Returns the values of an `albert_config.json` that describes the same model in the reference.

    Without any sharing each depth is a group of its own there, with the same names. InputError
    names everything that the reference cannot express.
    """
    values = config.to_dict()
    foreign = values.pop("foreign_keys", ())
    for name in LATER_FIELDS:
        values.pop(name, None)
    if values.pop("sharing") == "none":
        values["num_hidden_groups"] = config.num_hidden_layers
    rules = (
        ("sharing", config.sharing in ("all", "none"), '"all" or "none"'),
        ("hidden_act", config.hidden_act in ACTIVATIONS, str(ACTIVATIONS)),
        (
            "num_hidden_groups",
            groups_are_as_in_the_reference(config),
            "another number: with this one, a rounding error makes the reference skip a group",
            values["num_hidden_groups"],
        ),
        projection_rule(config),
    )
    check_expressible("google-research/albert", config, rules)
    ours = {name: value for name, value in values.items() if name not in foreign}
    return ours | {name: values[name] for name in foreign}


def groups_are_as_in_the_reference(config: AlbertConfig) -> bool:
    """Returns whether the reference, which divides floats, runs the same group at each depth."""
    layers = config.num_hidden_layers
    groups = layers if config.sharing == "none" else config.num_hidden_groups
    return all(int(depth / layers * groups) == depth * groups // layers for depth in range(layers))


def release_files(files: dict[str, bytes], word_piece: str) -> dict[str, bytes]:
    """Names a tokenizer's files as Google's releases do; InputError if two have the same name.

    `word_piece` is the name of the vocabulary of a WordPiece tokenizer.
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
            raise InputError(f"A release has one `{released}`. Received: {', '.join(files)}.")
        named[released] = content
    return named
