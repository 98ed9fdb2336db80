"""A conversion that changed something is noticed."""

import numpy as np
import pytest

from albert_keras.conversion.verify import (
    BOUND,
    compare,
    oracle_outputs,
    our_outputs,
    random_inputs,
    verify,
)
from data_pipeline.errors import InputError
from tests.albert_keras.conversion.conftest import SHAPE
from tests.albert_keras.interop import random_weights as small

#: The families without segment types.
ROBERTA = small.ROBERTA | {"embedding_size": 32}
DISTILBERT = small.DISTILBERT | {"embedding_size": 32}


def check(source, target):
    return verify(source, target, "google", "albert-keras", (None, None))


def test_inputs_are_of_several_lengths_and_padded_on_both_sides():
    batches = random_inputs(SHAPE)
    assert [batch["input_ids"].shape for batch in batches] == [(3, 1), (3, 7), (3, 24)]
    mask = batches[1]["input_mask"].tolist()
    assert mask == [[1] * 7, [0, 0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0]]
    assert set(batches[2]["segment_ids"].ravel()) == {0, 1}
    long = random_inputs(SHAPE.replace(max_position_embeddings=512))
    assert long[-1]["input_ids"].shape == (3, 64)
    again = random_inputs(SHAPE)
    assert all(map(np.array_equal, batches[2].values(), again[2].values()))


@pytest.mark.parametrize(
    "changes",
    [
        {"num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2},
        {"embedding_size": 32, "sharing": "none", "hidden_act": "gelu_erf"},
        {"embedding_size": 32, "embedding_projection": "always", "hidden_act": "relu"},
        {"sharing": "attention", "hidden_act": "silu"},
        {"sharing": "ffn", "hidden_act": "tanh"},
        ROBERTA,
        DISTILBERT,
    ],
    ids=lambda changes: ", ".join(map(str, changes.values())),
)
def test_the_oracle_agrees_with_our_model(random_weights, changes):
    heads = ("masked_lm", "sentence_order")
    if "pooler" in changes:
        heads = ("masked_lm",)
    weights = random_weights(SHAPE.replace(**changes), heads)
    inputs = random_inputs(weights.config)
    differences = compare(our_outputs(weights, inputs), oracle_outputs(weights, inputs))
    assert len(differences) == 2 + len(heads) and max(differences.values()) < 1e-5


def test_equal_models_pass_and_are_told_how_equal_they_are(random_weights):
    weights = random_weights(heads=("masked_lm",))
    found = check(weights, weights)
    assert (found.source, found.target) == ("reference in NumPy", "albert-keras")
    assert found.differences.keys() == {"sequence_output", "pooled_output", "masked_lm_logits"}
    assert found.equal_tensors == len(weights.tensors)


def test_another_activation_is_noticed(random_weights):
    source = random_weights()
    target = source._replace(config=SHAPE.replace(hidden_act="gelu_erf"))
    with pytest.raises(InputError, match="differs in .*masked_lm_logits by .*Nothing was"):
        check(source, target)


@pytest.mark.parametrize("name", ["bert/pooler/dense/kernel", "cls/predictions/output_bias"])
def test_a_tensor_with_one_other_bit_is_named(random_weights, name):
    source = random_weights()
    changed = source.tensors[name].copy()
    changed.flat[1] = np.nextafter(changed.flat[1], 9, dtype=np.float32)
    target = source._replace(tensors=source.tensors | {name: changed})
    with pytest.raises(InputError, match=f"These tensors differ: {name}. "):
        check(source, target)


def test_the_bound_is_for_numbers_up_to_one_and_grows_with_them():
    near, far = np.ones((1, 2)), np.full((1, 2), 1 + 2 * BOUND)
    with pytest.raises(InputError, match="pooled_output by 0.0002"):
        compare([{"pooled_output": near}], [{"pooled_output": far}])
    assert compare([{"pooled_output": 100 * near}], [{"pooled_output": 100 * near + BOUND}])
    with pytest.raises(InputError, match="pooled_output by nan"):
        compare([{"pooled_output": near * np.nan}], [{"pooled_output": near}])


def test_padding_of_a_model_that_counts_tokens_has_the_id_that_transformers_looks_for():
    for batch in random_inputs(SHAPE.replace(**ROBERTA)):
        assert ((batch["input_ids"] == 1) == (batch["input_mask"] == 0)).all()
