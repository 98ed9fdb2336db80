"""Small models as numbers, for tests of formats."""

import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.formats.model_weights import ModelWeights
from albert_keras.models.pretraining import AlbertForPretraining
from tests.albert_keras import numpy_albert
from tests.albert_keras.tasks.small_tasks import build_model

SMALL = {
    "vocab_size": 50,
    "embedding_size": 6,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 9,
}
BERT = {"embedding_size": 8, "sharing": "none", "hidden_act": "gelu_erf"}
DISTILBERT = BERT | {"type_vocab_size": 0, "pooler": "on_demand", "pooler_activation": "relu"}
ROBERTA = BERT | {
    "type_vocab_size": 0,
    "position_offset": 2,
    "layer_norm_epsilon": 1e-5,
    "pooler": "on_demand",
}


def pretraining_weights(seed=1, **changes):
    """Returns ModelWeights of a model with the heads of pre-training.

    Models whose pooler is on demand have no sentence head.
    """
    config = AlbertConfig(**SMALL | changes)
    sentence_head = config.pooler == "always"
    model = AlbertForPretraining(config, sentence_head=sentence_head, dtype="float32")
    return _weights(model, config, seed)


def task_weights(kind, num_outputs, labels=(), seed=1, **changes):
    """Returns ModelWeights of a fine-tuned model."""
    config = AlbertConfig(**SMALL | changes)
    model = build_model(kind, config, num_outputs, dtype="float32")
    return _weights(model, config, seed)._replace(labels=labels)


def without(weights, *starts):
    """Returns ModelWeights without the tensors whose names begin so."""
    tensors = {name: a for name, a in weights.tensors.items() if not name.startswith(starts)}
    return weights._replace(tensors=tensors)


def assert_same_weights(first, second):
    """Compares all that is part of the model, to the bit."""
    assert first.config == second.config
    assert first.labels == second.labels
    assert first.tensors.keys() == second.tensors.keys()
    for name, array in first.tensors.items():
        np.testing.assert_array_equal(array, second.tensors[name], err_msg=name)


def pretraining_model(weights):
    """Returns the AlbertForPretraining with given weights."""
    sentence_head = "sentence_order" in weights.heads
    model = AlbertForPretraining(weights.config, sentence_head=sentence_head, dtype="float32")
    names = [weight.name.removesuffix(":0") for weight in model.weights]
    assert sorted(names) == sorted(weights.tensors)
    model.set_weights([weights.tensors[name] for name in names])
    return model


def _weights(model, config, seed):
    numpy_albert.scramble(model, seed)
    return ModelWeights(config, numpy_albert.weights_by_name(model), "a test")
