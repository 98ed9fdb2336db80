import json
import re

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.interop import hub_module
from albert_keras.interop.checkpoint_tensors import write_tensors
from albert_keras.interop.hub_module import shape_of_release
from albert_keras.models.pretraining import AlbertForPretraining
from data_pipeline.errors import InputError
from tests.albert_keras import numpy_albert
from tests.albert_keras.interop.reference_models import (
    CONFIG,
    HEADS,
    assert_same_tensors,
    model_weights,
    reference_tensors,
)

INPUTS = {
    "input_word_ids": tf.constant([[2, 7, 9, 3, 8, 3, 0], [2, 5, 3, 0, 0, 0, 0]]),
    "input_mask": tf.constant([[1, 1, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0, 0]]),
    "input_type_ids": tf.constant([[0, 0, 0, 0, 1, 1, 0], [0] * 7]),
}


def write_version_1(folder, tensors, config=CONFIG):
    """Writes what reading sees of a module of TensorFlow 1."""
    for name in ("variables", "assets"):
        (folder / name).mkdir(parents=True)
    (folder / "tfhub_module.pb").write_bytes(b"\x08\x03")
    (folder / "saved_model.pb").write_bytes(b"not read")
    (folder / "assets" / "30k-clean.model").write_bytes(b"pieces")
    write_tensors(
        folder / "variables" / "variables", {f"module/{name}": a for name, a in tensors.items()}
    )
    if config is not None:
        values = {name: value for name, value in config.to_dict().items() if name != "sharing"}
        (folder / "assets" / "albert_config.json").write_text(json.dumps(values))


def test_a_module_of_tensorflow_1_is_read(tmp_path):
    tensors = reference_tensors("masked_lm")
    write_version_1(tmp_path / "module", tensors)
    assert hub_module.is_source(tmp_path / "module")
    weights = hub_module.read(tmp_path / "module")
    assert_same_tensors(weights.tensors, tensors)
    assert weights.config == CONFIG
    assert weights.tokenizer_files == {"30k-clean.model": b"pieces"}


def test_a_missing_tensor_is_named(tmp_path):
    tensors = reference_tensors("masked_lm")
    del tensors["bert/pooler/dense/bias"]
    write_version_1(tmp_path / "module", tensors)
    with pytest.raises(InputError, match="bert/pooler/dense/bias: missing"):
        hub_module.read(tmp_path / "module")


def test_sizes_that_no_release_has_need_a_configuration(tmp_path):
    write_version_1(tmp_path / "module", reference_tensors(), config=None)
    with pytest.raises(InputError, match="does not show `num_hidden_layers`.*`config`"):
        hub_module.read(tmp_path / "module")
    CONFIG.save(tmp_path / "mine.json")
    assert hub_module.read(tmp_path / "module", config=tmp_path / "mine.json").config == CONFIG


@pytest.mark.parametrize("size, hidden, inner", [("base", 768, 3072), ("xlarge", 2048, 8192)])
@pytest.mark.parametrize("pieces, activation", [(30_000, "gelu"), (21_128, "relu")])
def test_released_sizes_are_recognised(size, hidden, inner, pieces, activation):
    block = "bert/encoder/transformer/group_0/inner_group_0"
    one = np.float32(0)
    tensors = {
        "bert/embeddings/word_embeddings": np.broadcast_to(one, (pieces, 128)),
        "bert/embeddings/position_embeddings": np.broadcast_to(one, (512, 128)),
        "bert/embeddings/token_type_embeddings": np.broadcast_to(one, (2, 128)),
        f"{block}/ffn_1/intermediate/dense/kernel": np.broadcast_to(one, (hidden, inner)),
    }
    wanted = AlbertConfig.from_name(f"albert-{size}-v2", vocab_size=pieces, hidden_act=activation)
    assert shape_of_release(tensors, "x") == wanted
    twice = tensors | {f"{block.replace('group_0/', 'group_1/')}/x": one}
    with pytest.raises(InputError, match="'num_hidden_groups': 2"):
        shape_of_release(twice, "x")


#: Ours -> the name in tensorflow/models' ALBERT, whose attention has an axis for the heads.
THEIRS = {
    r"bert/embeddings/word_embeddings": "word_embeddings/embeddings",
    r"bert/embeddings/position_embeddings": "position_embedding/embeddings",
    r"bert/embeddings/token_type_embeddings": "type_embeddings/embeddings",
    r"bert/embeddings/LayerNorm/(.*)": r"embeddings/layer_norm/\1",
    r"bert/encoder/embedding_hidden_mapping_in/(.*)": r"embedding_projection/\1",
    r".*/attention_1/self/(.*)": r"transformer/self_attention/\1",
    r".*/attention_1/output/dense/(.*)": r"transformer/self_attention/attention_output/\1",
    r".*0/LayerNorm/(.*)": r"transformer/self_attention_layer_norm/\1",
    r".*/ffn_1/intermediate/dense/(.*)": r"transformer/intermediate/\1",
    r".*/ffn_1/intermediate/output/dense/(.*)": r"transformer/output/\1",
    r".*/LayerNorm_1/(.*)": r"transformer/output_layer_norm/\1",
    r"bert/pooler/dense/(.*)": r"pooler_transform/\1",
    r"cls/predictions/output_bias": "bert/cls/predictions/output_bias/bias",
    r"(cls/predictions/.*)": r"bert/\1",
}


def in_their_layout(name, array):
    pattern = next((pattern for pattern in THEIRS if re.fullmatch(pattern, name)), None)
    theirs = name if pattern is None else re.fullmatch(pattern, name).expand(THEIRS[pattern])
    if re.search("self_attention/(query|key|value)", theirs):
        array = array.reshape((*array.shape[:-1], 2, 4))
    elif theirs.endswith("attention_output/kernel"):
        array = array.reshape(2, 4, 8)
    return theirs, array


@pytest.fixture
def of_tensorflow_models(tmp_path):
    tensors = reference_tensors("masked_lm", groups=1, inner=1)
    root = tf.train.Checkpoint()
    pairs = [in_their_layout(name, array) for name, array in tensors.items()]
    root.held = [tf.Variable(array, name=name) for name, array in pairs]
    root.do_lower_case = tf.Variable(True, trainable=False)
    tf.saved_model.save(root, str(tmp_path / "module"))
    config = CONFIG.model_copy(update={"num_hidden_groups": 1, "inner_group_num": 1})
    config.save(tmp_path / "albert_config.json")
    return tmp_path / "module", tensors, config, root


def test_a_module_of_tensorflow_models_is_read(of_tensorflow_models):
    path, tensors, config, _ = of_tensorflow_models
    weights = hub_module.read(path)
    assert_same_tensors(weights.tensors, tensors)
    assert weights.config == config and weights.heads == ("masked_lm",)


def test_an_unknown_variable_of_a_module_is_named(of_tensorflow_models):
    path, _, _, root = of_tensorflow_models
    root.more = tf.Variable([1.0], name="mystery/kernel")
    tf.saved_model.save(root, str(path))
    with pytest.raises(InputError, match=r"mystery/kernel: unexpected tensor of shape \[1\]"):
        hub_module.read(path)


def test_two_variables_of_one_name_are_refused(of_tensorflow_models):
    path, _, _, root = of_tensorflow_models
    root.more = tf.Variable([1.0], name="pooler_transform/bias")
    tf.saved_model.save(root, str(path))
    with pytest.raises(InputError, match="two variables with the same name: pooler_transform/bias"):
        hub_module.read(path)


@pytest.mark.parametrize("name", ["saved_model.pb", "variables"])
def test_other_folders_are_refused(of_tensorflow_models, name):
    path = of_tensorflow_models[0]
    (path / name).rename(path / "elsewhere")
    assert not hub_module.is_source(path)
    with pytest.raises(InputError, match="is not the folder of a TensorFlow Hub module"):
        hub_module.read(path)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Returns (folder, weights): a module of ours with all heads."""
    folder = tmp_path_factory.mktemp("hub") / "module"
    files = {"spiece.model": b"pieces", "tokenizer.json": b"{}"}
    config = CONFIG.model_copy(update={"num_hidden_layers": 2, "inner_group_num": 1})
    weights = model_weights(*HEADS, config=config, inner=1, tokenizer_files=files)
    hub_module.write(weights, folder)
    return folder, weights


def test_there_and_back_is_the_same_model(written):
    folder, weights = written
    returned = hub_module.read(folder)
    assert_same_tensors(returned.tensors, weights.tensors)
    assert returned.config == weights.config
    assert returned.tokenizer_files == {"spiece.model": b"pieces"}


def our_outputs(weights):
    model = AlbertForPretraining(weights.config, dtype="float32")
    for variable in model.weights:
        variable.assign(weights.tensors[variable.name.removesuffix(":0")])
    inputs = dict(zip(("input_ids", "input_mask", "segment_ids"), INPUTS.values(), strict=True))
    return model(inputs | {"masked_lm_positions": tf.constant([[1, 2], [0, 1]])})


def test_hub_loads_it_and_gives_our_outputs(written):
    hub = pytest.importorskip("tensorflow_hub")
    folder, weights = written
    layer = hub.KerasLayer(str(folder), trainable=True)
    found, wanted = layer(INPUTS), our_outputs(weights)
    for name in ("pooled_output", "sequence_output"):
        np.testing.assert_allclose(found[name], wanted[name], atol=1e-5)
    np.testing.assert_array_equal(found["default"], found["pooled_output"])
    assert len(found["encoder_outputs"]) == 2
    np.testing.assert_array_equal(found["encoder_outputs"][-1], found["sequence_output"])
    masked = INPUTS | {"masked_lm_positions": tf.constant([[1, 2], [0, 1]])}
    logits = layer.resolved_object.mlm(masked)["mlm_logits"]
    np.testing.assert_allclose(logits, wanted["masked_lm_logits"], atol=1e-5)
    assert layer.resolved_object.sp_model_file.asset_path.numpy().endswith(b"/spiece.model")


def test_it_can_be_trained_on(written):
    hub = pytest.importorskip("tensorflow_hub")
    layer = hub.KerasLayer(str(written[0]), trainable=True)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(layer(INPUTS, training=True)["pooled_output"]))
    names = {variable.name for variable in layer.trainable_variables}
    assert names == {f"{name}:0" for name in reference_tensors(inner=1)}
    for gradient in tape.gradient(loss, layer.trainable_variables):
        assert np.isfinite(tf.convert_to_tensor(gradient)).all()
    assert not np.array_equal(*(layer(INPUTS, training=True)["pooled_output"] for _ in "ab"))


def test_outputs_are_those_of_the_oracle(written):
    folder, weights = written
    loaded = tf.saved_model.load(str(folder))
    ids, mask, segments = (array.numpy() for array in INPUTS.values())
    sequence, pooled, _ = numpy_albert.encode(
        weights.tensors, weights.config.to_dict(), ids, mask, segments
    )
    outputs = loaded(INPUTS)
    np.testing.assert_allclose(outputs["sequence_output"], sequence, atol=1e-4)
    np.testing.assert_allclose(outputs["pooled_output"], pooled, atol=1e-4)
