import json

import pytest

from albert_keras.config import AlbertConfig
from data_pipeline.errors import InputError


def test_the_default_is_albert_base_version_2():
    assert AlbertConfig() == AlbertConfig.from_name("albert-base-v2")
    assert AlbertConfig.from_name("albert-base") == AlbertConfig.from_name("albert-base-v2")


def test_what_is_named_albert_shares_and_nothing_else_does():
    for name in AlbertConfig.names():
        assert (AlbertConfig.from_name(name).sharing == "all") == name.startswith("albert")
    with pytest.raises(InputError, match="Did you mean `albert-xlarge`"):
        AlbertConfig.from_name("albert-xlrge")


def test_all_wrong_fields_are_told_at_once_and_then_what_does_not_fit_together():
    with pytest.raises(InputError) as error:
        AlbertConfig(vocab_size=0, hidden_dropout_prob=1.0, hidden_act="swoosh")
    message = str(error.value)
    assert message.startswith("3 problems in AlbertConfig")
    for field in ("vocab_size", "hidden_dropout_prob", "hidden_act"):
        assert field in message
    with pytest.raises(InputError) as error:
        AlbertConfig(vocab_size=8, hidden_size=100, num_attention_heads=12, num_hidden_groups=13)
    message = str(error.value)
    assert message.startswith("2 problems in AlbertConfig")
    assert "hidden_size" in message and "groups" in message


@pytest.mark.parametrize(
    "written, meant", [("GELU", "gelu"), ("", "linear"), (None, "linear"), ("ReLU", "relu")]
)
def test_activations_are_read_as_the_reference_reads_them(written, meant):
    assert AlbertConfig(hidden_act=written).hidden_act == meant


def test_a_reference_file_keeps_every_key_through_a_round_trip(tmp_path):
    original = {
        "vocab_size": 21128,
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
        "hidden_act": "relu",
        "net_structure_type": 0,
        "gap_size": 0,
        "layers_to_keep": [],
        "down_scale_factor": 1,
    }
    path = tmp_path / "albert_config.json"
    path.write_text(json.dumps(original))
    config = AlbertConfig.from_reference_json(path)
    assert config.foreign_keys == {"net_structure_type": 0, "gap_size": 0, "layers_to_keep": []}
    config.save(path)
    assert json.loads(path.read_text()).items() >= original.items()
    assert AlbertConfig.from_json_file(path) == config
    assert AlbertConfig.from_reference_json(path) == config
    assert config.replace(vocab_size=10).foreign_keys == config.foreign_keys


def test_a_reference_file_must_have_the_shape_and_its_names(tmp_path):
    path = tmp_path / "albert_config.json"
    shape = {"vocab_size": 300, "hidden_size": 32, "num_hidden_layers": 2}
    shape |= {"num_attention_heads": 4, "intermediate_size": 64}
    path.write_text(json.dumps(shape))
    assert AlbertConfig.from_reference_json(path) == AlbertConfig(**shape)
    for name in shape:
        path.write_text(json.dumps({key: value for key, value in shape.items() if key != name}))
        with pytest.raises(InputError, match=f"define the shape of a model. Missing: {name}. Rec"):
            AlbertConfig.from_reference_json(path)
    kept = AlbertConfig(**shape, foreign_keys={"position_embedding_type": "absolute"})
    kept.save(path)  # a key of transformers, as a converted model has it
    assert AlbertConfig.from_reference_json(path) == kept


def test_a_misspelt_key_of_a_file_is_named(tmp_path):
    (tmp_path / "config.json").write_text('{"hiden_size": 768}')
    with pytest.raises(
        InputError, match="`hiden_size` is not a known key. Did you mean `hidden_size`"
    ):
        AlbertConfig.from_json_file(tmp_path / "config.json")


def test_attention_does_not_change_files_of_other_models_and_must_fit():
    assert not any(
        name.startswith("attention_") and "prob" not in name for name in AlbertConfig().to_dict()
    )
    sparse = AlbertConfig(attention="block-sparse", attention_seed=3)
    assert AlbertConfig.from_dict(sparse.to_dict()) == sparse
    assert (sparse.key_blocks, sparse.is_sparse_at(448), sparse.is_sparse_at(449)) == (
        7,
        False,
        True,
    )
    with pytest.raises(InputError, match="attention_window_blocks` must be odd"):
        AlbertConfig(attention_window_blocks=2)
    with pytest.raises(InputError, match="at most 2,048 blocks"):
        AlbertConfig(
            attention="block-sparse", max_position_embeddings=2**17, attention_block_size=1
        )
