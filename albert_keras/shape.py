"""The shape of a model: its tensors, its weights and its operations, without TensorFlow.

Tensors have the names and shapes of google-research/albert.
"""

import math
import re
from collections.abc import Iterable
from typing import NamedTuple

from albert_keras.config import AlbertConfig
from albert_keras.sharing import layer_plan

PROJECTION = "bert/encoder/embedding_hidden_mapping_in"
POOLER = "bert/pooler/dense"
TYPES = "bert/embeddings/token_type_embeddings"
POSITIONS = "bert/embeddings/position_embeddings"
_BLOCKS = "bert/encoder/transformer/"


def _layer(name, axes):
    """Returns the tensors of a dense layer, or for a single axis those of a normalization."""
    if len(axes) == 1:
        return {f"{name}/beta": axes, f"{name}/gamma": axes}
    return {f"{name}/kernel": axes, f"{name}/bias": axes[-1]}


#: Tensor -> its axes, by letter, see `_shapes`.
_EMBEDDINGS = {"bert/embeddings/word_embeddings": "VE", **_layer("bert/embeddings/LayerNorm", "E")}
#: Layers of a block: what follows `inner_group_K/`, and the axes.
BLOCK = {
    "query": ("attention_1/self/query", "HH"),
    "key": ("attention_1/self/key", "HH"),
    "value": ("attention_1/self/value", "HH"),
    "output": ("attention_1/output/dense", "HH"),
    "attention_norm": ("LayerNorm", "H"),
    "wide": ("ffn_1/intermediate/dense", "HI"),
    "narrow": ("ffn_1/intermediate/output/dense", "IH"),
    "last_norm": ("LayerNorm_1", "H"),
}
_FEED_FORWARD = ("wide", "narrow", "last_norm")
_HEADS = {
    "masked_lm": {
        **_layer("cls/predictions/transform/dense", "HE"),
        **_layer("cls/predictions/transform/LayerNorm", "E"),
        "cls/predictions/output_bias": "V",
    },
    "sentence_order": {
        "cls/seq_relationship/output_weights": "2H",
        "cls/seq_relationship/output_bias": "2",
    },
    "classifier": {"output_weights": "CH", "output_bias": "C"},
    "spans": {"cls/squad/output_weights": "2H", "cls/squad/output_bias": "2"},
    "spans_or_none": {
        **_layer("start_logits/dense", "H1"),
        **_layer("end_logits/dense_0", "DH"),
        **_layer("end_logits/LayerNorm", "H"),
        **_layer("end_logits/dense_1", "H1"),
        **_layer("answer_class/dense_0", "DH"),
        "answer_class/dense_1/kernel": "H1",  # has no bias
    },
}


#: Names of the parts a model may have besides the encoder -> how their tensors' names start.
HEADS = {
    head: tuple(dict.fromkeys(re.match(r"cls/\w+/|\w+/?", name)[0] for name in tensors))
    for head, tensors in _HEADS.items()
}


def heads_of(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the heads in `HEADS` that have at least one tensor among these names."""
    return tuple(
        head for head, starts in HEADS.items() if any(name.startswith(starts) for name in names)
    )


def encoder_shapes(config: AlbertConfig, names: Iterable[str] = ()) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of the encoder's tensors, with any sharing.

    A pooler on demand is among them if it is among the `names` of a model's tensors.
    """
    axes = dict(_EMBEDDINGS)
    if config.position_rows:
        axes[POSITIONS] = "PE"
    if config.type_vocab_size:
        axes[TYPES] = "TE"
    if config.projects_embeddings:
        axes |= _layer(PROJECTION, "EH")
    for use in layer_plan(config):
        for layer, (name, letters) in BLOCK.items():
            block = use.feed_forward if layer in _FEED_FORWARD else use.attention
            axes |= _layer(f"{_BLOCKS}{block.scope}/{name}", letters)
    if config.pooler == "always" or any(name.startswith("bert/pooler/") for name in names):
        axes |= _layer(POOLER, "HH")
    return _shapes(axes, config)


def head_shapes(config: AlbertConfig, tensors) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of all tensors of the heads that have at least one tensor.

    `tensors` maps the reference's names of the whole model to arrays.
    """
    # The length of the classifier's bias, which no transposition can hide.
    first = next((name for name in ("output_bias", "output_weights") if name in tensors), None)
    num_classes = tensors[first].shape[0] if first and tensors[first].ndim else 0
    axes = {}
    for head in heads_of(tensors):
        axes |= _HEADS[head]
    return _shapes(axes, config, num_classes)


def _shapes(axes, config, num_classes=0):
    sizes = {
        "V": config.vocab_size,
        "E": config.embedding_size,
        "H": config.hidden_size,
        "D": 2 * config.hidden_size,
        "I": config.intermediate_size,
        "P": config.position_rows,
        "T": config.type_vocab_size,
        "C": num_classes,
        "1": 1,
        "2": 2,
    }
    return {name: tuple(sizes[letter] for letter in letters) for name, letters in axes.items()}


class WeightCount(NamedTuple):
    """Number of weights of a model, by part."""

    embeddings: int  # tables, their normalisation, the projection to the encoder's size
    blocks: int  # all attention and feed-forward blocks; shared ones count once
    pooler: int
    masked_lm_head: int  # without the output table, which is the embedding table
    sentence_head: int

    @property
    def total(self):
        """int. Number of all weights."""
        return sum(self)


def count_weights(config, masked_lm_head=True, sentence_head=True):
    """Returns the WeightCount of a model.

        embeddings   (V + positions + offset + segments)·E + 2·E, and E·H + H if E != H
        attention    4·(H·H + H) + 2·H       for each set of weights
        feed-forward 2·H·I + I + H + 2·H     for each set of weights
        pooler       H·H + H; if it is on demand, only with the sentence head
        masked LM    H·E + E + 2·E + V
        sentences    2·H + 2

    V = `vocab_size`, E = `embedding_size`, H = `hidden_size`, I = `intermediate_size` of the
    AlbertConfig. A classifier of two classes in fine-tuning is as large as the sentence head.

    Source:
        The variables of google-research/albert, `modeling.py` and `run_pretraining.py`.
    """
    shapes = encoder_shapes(config, names=(POOLER,) if sentence_head else ())
    masked_lm = _shapes(_HEADS["masked_lm"], config)
    sentence_order = _shapes(_HEADS["sentence_order"], config)
    return WeightCount(
        embeddings=_count(shapes, "bert/embeddings/") + _count(shapes, PROJECTION),
        blocks=_count(shapes, _BLOCKS),
        pooler=_count(shapes, POOLER),
        masked_lm_head=_count(masked_lm) if masked_lm_head else 0,
        sentence_head=_count(sentence_order) if sentence_head else 0,
    )


def _count(shapes, start=""):
    """Returns the number of weights of the tensors whose names start like this."""
    return sum(math.prod(shape) for name, shape in shapes.items() if name.startswith(start))


def family_name(config) -> str:
    """Returns what people call a model: "ALBERT" if its layers share weights, otherwise "RoBERTa",
    "DistilBERT" or "BERT".
    """
    if config.sharing != "none":
        return "ALBERT"
    if config.position_offset:
        return "RoBERTa"
    return "DistilBERT" if config.type_vocab_size == 0 else "BERT"


def model_line(config, num_parameters: int | None = None) -> str:
    """Describes a model in one line for logs, cards and lists.

    Args:
        config: AlbertConfig.
        num_parameters: int or None. Number of weights that the model has; None counts those of a
            model for pre-training.

    Returns:
        str. Such as "ALBERT, 6 layers that share one set of weights, 4.4 M parameters" or
        "BERT, 12 layers, each with its own weights, 110.1 M parameters".
    """
    plan = layer_plan(config)
    sets = max(len({use.attention for use in plan}), len({use.feed_forward for use in plan}))
    depth = config.num_hidden_layers * config.inner_group_num
    layers = f"{depth:,} layer{'s' if depth > 1 else ''}"
    if config.sharing == "none":
        layers += ", each with its own weights" if depth > 1 else ""
    elif config.sharing != "all":
        shared = {"attention": "attention", "ffn": "feed-forward"}[config.sharing]
        layers += f" that share their {shared} weights"
    elif depth > 1:
        layers += f" that share {f'{sets:,} sets' if sets > 1 else 'one set'} of weights"
    if config.position_embedding == "rotary":
        layers += ", rotary positions"
    total = count_weights(config).total if num_parameters is None else num_parameters
    return f"{family_name(config)}, {layers}, {total / 1e6:,.1f} M parameters"
