import numpy as np
import pytest

from albert_keras.formats.checkpoint_tensors import without_aliases
from data_pipeline.errors import InputError
from tests.albert_keras.formats.reference_models import assert_same_tensors, reference_tensors
from tests.albert_keras.formats.test_google_checkpoint import opened, write_release


def named_by_keras(tensors):
    """Numbers all normalisations in the order in which the reference makes them."""
    blocks = [f"group_{group}/inner_group_{inner}" for group in (0, 1) for inner in (0, 1)]
    scopes = ["bert/embeddings/LayerNorm"]
    scopes += [f"bert/encoder/transformer/{b}/LayerNorm{n}" for b in blocks for n in ("", "_1")]
    scopes += ["cls/predictions/transform/LayerNorm"]
    changed = dict(tensors)
    for number, scope in enumerate(scopes):
        alias = f"layer_normalization_{number}" if number else "layer_normalization"
        for part in ("beta", "gamma"):
            place = scope.rpartition("/")[0]
            changed[f"{place}/{alias}/{part}"] = changed.pop(f"{scope}/{part}")
    return changed


def test_attention_comes_before_the_feed_forward_part(tmp_path):
    tensors = reference_tensors("masked_lm")
    changed = named_by_keras(tensors)
    assert "bert/encoder/transformer/group_1/inner_group_1/layer_normalization_8/beta" in changed
    state = {f"{name}/adam_m": np.zeros(2, np.float32) for name in changed}
    assert_same_tensors(opened(write_release(tmp_path, changed | state)).tensors, tensors)


BLOCK = "bert/encoder/transformer/group_0/inner_group_0"


def test_numbers_are_ordered_as_numbers():
    names = [f"{BLOCK}/layer_normalization_{number}/beta" for number in (10, 9)]
    assert without_aliases(names, "x") == {
        f"{BLOCK}/LayerNorm_1/beta": names[0],
        f"{BLOCK}/LayerNorm/beta": names[1],
    }


@pytest.mark.parametrize(
    "names, message",
    [
        ([f"{BLOCK}/layer_normalization/beta"], "1 layer_normalization, expected 2"),
        (
            [f"{BLOCK}/layer_normalization_{number}/beta" for number in (1, 2, 3, 4)],
            "4 layer_normalization, expected 2",
        ),
        (
            ["bert/embeddings/layer_normalization/beta", "bert/embeddings/LayerNorm/gamma"],
            "both LayerNorm and layer_normalization",
        ),
        # A copy that gave each depth a scope, and normalisations, of its own.
        (
            [
                f"bert/encoder/transformer/group_0_2/layer_2/inner_group_0/layer_normalization_{n}"
                "/beta"
                for n in (5, 6)
            ],
            "group_0_2/layer_2/inner_group_0: 2 layer_normalization, expected 0",
        ),
    ],
)
def test_what_is_not_clear_is_refused(names, message):
    with pytest.raises(InputError, match=message):
        without_aliases(names, "x")
