"""A conversion that changed something is noticed."""

import numpy as np
import pytest

from albert_keras.conversion import verify as module
from albert_keras.conversion.verify import BOUND, compare, our_outputs, random_inputs, verify
from data_pipeline.errors import InputError
from tests.albert_keras import numpy_albert
from tests.albert_keras.conversion.conftest import SHAPE
from tests.albert_keras.formats import random_weights as small

#: The families without segment types.
ROBERTA = small.ROBERTA | {"embedding_size": 32}
DISTILBERT = small.DISTILBERT | {"embedding_size": 32}


@pytest.fixture
def framework(monkeypatch):
    """Lets the reference in NumPy run what belongs to another library."""
    monkeypatch.setattr(
        module,
        "_framework_outputs",
        lambda _, path, weights, inputs: ("a library", oracle_outputs(weights, inputs), ""),
    )


def check(source, target):
    return verify(source, target, "hugging-face", "albert-keras", (None, None))


def oracle_outputs(weights, inputs):
    """Runs ModelWeights in NumPy; returns the outputs of each batch."""
    sizes, tensors, results = dict(weights.config), weights.tensors, []
    for batch in inputs:
        sequence, pooled, _ = numpy_albert.encode(tensors, sizes, **batch)
        outputs = {"sequence_output": sequence, "pooled_output": pooled}
        if "masked_lm" in weights.heads:
            logits = numpy_albert.masked_lm_logits(tensors, sizes, sequence)
            outputs["masked_lm_logits"] = logits
        if "sentence_order" in weights.heads:
            logits = numpy_albert.sentence_order_logits(tensors, pooled)
            outputs["sentence_order_logits"] = logits
        if "classifier" in weights.heads:
            outputs["logits"] = pooled @ tensors["output_weights"].T + tensors["output_bias"]
        results.append(outputs)
    return results


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


def test_equal_models_pass_with_their_largest_differences(random_weights, framework):
    weights = random_weights(heads=("masked_lm",))
    found = check(weights, weights)
    assert (found.source, found.target) == ("a library", "albert-keras")
    assert found.differences.keys() == {"sequence_output", "pooled_output", "masked_lm_logits"}
    assert found.equal_tensors == len(weights.tensors)


def test_another_activation_is_noticed(random_weights, framework):
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


def test_the_logits_of_a_task_are_compared(random_weights, framework):
    weights = random_weights(heads=("classifier",))
    assert check(weights, weights).differences["logits"] < 1e-5


def test_a_format_that_no_library_runs_is_compared_by_its_tensors_alone(random_weights):
    weights = random_weights()
    found = verify(weights, weights, "google", "albert-keras", (None, None))
    assert found.equal_tensors == len(weights.tensors) and not found.differences
