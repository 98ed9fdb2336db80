"""Small models as numbers, for tests of formats."""

import dataclasses

import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.runs.tensors import weight_names
from albert_keras.shape import encoder_shapes, head_shapes

SMALL = {
    "vocab_size": 50,
    "embedding_size": 6,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 9,
}
GROUPS = {"num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2}
BERT = {"embedding_size": 8, "sharing": "none", "hidden_act": "gelu_erf"}
DISTILBERT = BERT | {"type_vocab_size": 0, "pooler": "on_demand", "pooler_activation": "relu"}
ROBERTA = BERT | {
    "type_vocab_size": 0,
    "position_offset": 2,
    "layer_norm_epsilon": 1e-5,
    "pooler": "on_demand",
}


def pretraining_weights(seed=1, **changes):
    """Returns the OpenedModel of a model with the heads of pre-training.

    Models whose pooler is on demand have no sentence head.
    """
    config = AlbertConfig(**SMALL | changes)
    ends = {"cls/predictions/output_bias": config.vocab_size}
    if config.pooler == "always":
        ends["cls/seq_relationship/output_bias"] = 2
    return _weights(config, ends, seed)


def task_weights(kind, num_outputs, labels=(), seed=1, **changes):
    """Returns the OpenedModel of a fine-tuned model."""
    ends = {"spans": {"cls/squad/output_bias": 2}, "spans_or_none": {"start_logits/dense/bias": 1}}
    ends = ends.get(kind, {"output_bias": num_outputs})
    is_pooled = kind in ("classification", "regression", "choice")
    return _weights(AlbertConfig(**SMALL | changes), ends, seed, is_pooled, labels)


def without(weights, *starts):
    """Returns a model without the tensors whose names begin so."""
    arrays = {name: a for name, a in weights.arrays.items() if not name.startswith(starts)}
    return with_arrays(weights, arrays)


def with_arrays(weights, arrays):
    """Returns a model with other tensors."""
    return OpenedModel.of(weights.albert_config, arrays, weights.path, labels=weights.labels)


def with_shape(weights, **changes):
    """Returns a model with changes in its AlbertConfig."""
    return dataclasses.replace(weights, albert_config=weights.albert_config.replace(**changes))


def assert_same_weights(first, second):
    """Compares all that is part of the model, to the bit."""
    assert first.albert_config == second.albert_config
    assert first.labels == second.labels
    ours, theirs = first.arrays, second.arrays
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)


def pretraining_model(weights):
    """Returns the AlbertForPretraining with given weights."""
    sentence_head = "sentence_order" in weights.heads
    config, arrays = weights.albert_config, weights.arrays
    model = AlbertForPretraining(config, sentence_head=sentence_head, dtype="float32")
    names = [*weight_names(model)]
    assert sorted(names) == sorted(arrays)
    model.set_weights([arrays[name] for name in names])
    return model


def _weights(config, ends, seed, is_pooled=False, labels=()):
    """Returns random numbers for an encoder and heads, each named by its last tensor."""
    ends = {name: np.zeros(size) for name, size in ends.items()}
    shapes = encoder_shapes(config, ["bert/pooler/"] if is_pooled else [])
    draw = np.random.default_rng(seed)
    tensors = {
        name: draw.normal(name.endswith("gamma"), 0.2, shape).astype(np.float32)
        for name, shape in (shapes | head_shapes(config, ends)).items()
    }
    return OpenedModel.of(config, tensors, "a test", labels=labels)
