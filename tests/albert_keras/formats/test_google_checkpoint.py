import json

import pytest

from albert_keras.config import AlbertConfig
from albert_keras.formats import google_checkpoint
from albert_keras.formats.open_model import open_model
from albert_keras.runs.tensors import write_tensors
from data_pipeline.errors import InputError
from tests.albert_keras.formats.reference_models import (
    CONFIG,
    HEADS,
    assert_same_tensors,
    model_weights,
    reference_tensors,
)


def write_release(folder, tensors, config=CONFIG, **more):
    """Writes what google-research/albert would have: returns the prefix."""
    folder.mkdir(exist_ok=True)
    values = {name: value for name, value in config.to_dict().items() if name != "sharing"}
    (folder / "albert_config.json").write_text(json.dumps(values | more))
    write_tensors(folder / "model.ckpt-best", tensors)
    return folder / "model.ckpt-best"


def opened(path):
    return open_model(path).weights()


@pytest.fixture
def release(tmp_path):
    tensors = reference_tensors("masked_lm", "sentence_order")
    return write_release(tmp_path / "albert", tensors, net_structure_type=0), tensors


@pytest.mark.parametrize("head", HEADS)
def test_every_number_arrives(tmp_path, head):
    tensors = reference_tensors(head)
    weights = opened(write_release(tmp_path, tensors))
    assert_same_tensors(weights.tensors, tensors)
    assert weights.heads == (head,)
    assert weights.config == CONFIG


def test_names_of_tensorflow_hub_are_read(tmp_path):
    tensors = reference_tensors("masked_lm")
    prefix = write_release(tmp_path, {f"module/{name}": a for name, a in tensors.items()})
    assert_same_tensors(opened(prefix).tensors, tensors)


def test_a_folder_with_two_checkpoints_is_refused(release):
    prefix, tensors = release
    write_tensors(prefix.with_name("model.ckpt-5"), tensors)
    with pytest.raises(InputError, match="Choose one: .*model.ckpt-5, .*model.ckpt-best"):
        opened(prefix.parent)


@pytest.mark.parametrize("head", HEADS)
def test_there_and_back_is_the_same_model(tmp_path, head):
    weights = model_weights(head)
    google_checkpoint.write(weights, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "albert_config.json",
        "model.ckpt-best.data-00000-of-00001",
        "model.ckpt-best.index",
    ]
    returned = opened(tmp_path)
    assert_same_tensors(returned.tensors, weights.tensors)
    assert returned.config == weights.config


def test_only_keys_of_the_reference_and_foreign_ones_are_written(tmp_path):
    config = CONFIG.model_copy(update={"foreign_keys": {"gap_size": 0}})
    google_checkpoint.write(model_weights(config=config), tmp_path)
    values = json.loads((tmp_path / "albert_config.json").read_text())
    assert values["gap_size"] == 0 and values["hidden_act"] == "gelu"
    assert not values.keys() & {"sharing", "foreign_keys", "embedding_projection"}
    assert opened(tmp_path).config == config


def test_a_model_without_sharing_has_a_group_for_each_depth(tmp_path):
    config = CONFIG.model_copy(
        update={"sharing": "none", "num_hidden_groups": 1, "inner_group_num": 1}
    )
    weights = model_weights("masked_lm", config=config, groups=4, inner=1)
    google_checkpoint.write(weights, tmp_path)
    returned = opened(tmp_path)
    assert_same_tensors(returned.tensors, weights.tensors)
    assert (returned.config.sharing, returned.config.num_hidden_groups) == ("all", 4)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"sharing": "attention"}, "`sharing` must be .*'attention'"),
        ({"hidden_act": "gelu_erf"}, "`hidden_act` must be .*'gelu_erf'"),
        (
            {"sharing": "none", "num_hidden_layers": 22, "inner_group_num": 1},
            "skip a group",
        ),
        (
            {"embedding_size": 8, "embedding_projection": "always"},
            '`embedding_projection` must be "auto"',
        ),
    ],
)
def test_what_the_reference_cannot_have_is_not_written(change, message):
    with pytest.raises(InputError, match=message):
        google_checkpoint.reference_config(AlbertConfig(**(CONFIG.to_dict() | change)))


def test_groups_that_the_reference_rounds_otherwise_are_warned_of(tmp_path, caplog):
    config = CONFIG.model_copy(
        update={"num_hidden_layers": 22, "num_hidden_groups": 22, "inner_group_num": 1}
    )
    opened(write_release(tmp_path, reference_tensors(groups=22, inner=1), config))
    assert "22 layers in 22 groups, the reference uses different groups" in caplog.text
