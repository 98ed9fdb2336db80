import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.interop import tf_models
from albert_keras.interop.checkpoint_tensors import read_named_tensors
from albert_keras.interop.model_weights import ModelWeights, encoder_shapes, head_shapes
from data_pipeline.errors import InputError
from tests.albert_keras import numpy_albert

CONFIG = AlbertConfig(
    vocab_size=20,
    embedding_size=4,
    hidden_size=8,
    num_hidden_layers=3,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=9,
)
HEAD = "cls/predictions/output_bias"
#: Keys of `tf.train.Checkpoint(encoder=..., masked_lm=...)` in tf-models-official 2.15.0, without
#: `/.ATTRIBUTES/VARIABLE_VALUE`, and shapes.
KEYS = {
    "encoder/layer_with_weights-1/embeddings": [9, 4],
    "encoder/layer_with_weights-2/embeddings": [2, 4],
    "encoder/layer_with_weights-3/beta": [4],
    "encoder/layer_with_weights-3/gamma": [4],
    "encoder/layer_with_weights-4/bias": [8],
    "encoder/layer_with_weights-4/kernel": [4, 8],
    "encoder/layer_with_weights-5/_attention_layer/_key_dense/bias": [2, 4],
    "encoder/layer_with_weights-5/_attention_layer/_key_dense/kernel": [8, 2, 4],
    "encoder/layer_with_weights-5/_attention_layer/_output_dense/bias": [8],
    "encoder/layer_with_weights-5/_attention_layer/_output_dense/kernel": [2, 4, 8],
    "encoder/layer_with_weights-5/_attention_layer/_query_dense/bias": [2, 4],
    "encoder/layer_with_weights-5/_attention_layer/_query_dense/kernel": [8, 2, 4],
    "encoder/layer_with_weights-5/_attention_layer/_value_dense/bias": [2, 4],
    "encoder/layer_with_weights-5/_attention_layer/_value_dense/kernel": [8, 2, 4],
    "encoder/layer_with_weights-5/_attention_layer_norm/beta": [8],
    "encoder/layer_with_weights-5/_attention_layer_norm/gamma": [8],
    "encoder/layer_with_weights-5/_intermediate_dense/bias": [12],
    "encoder/layer_with_weights-5/_intermediate_dense/kernel": [8, 12],
    "encoder/layer_with_weights-5/_output_dense/bias": [8],
    "encoder/layer_with_weights-5/_output_dense/kernel": [12, 8],
    "encoder/layer_with_weights-5/_output_layer_norm/beta": [8],
    "encoder/layer_with_weights-5/_output_layer_norm/gamma": [8],
    "encoder/layer_with_weights-6/bias": [8],
    "encoder/layer_with_weights-6/kernel": [8, 8],
    "masked_lm/dense/bias": [4],
    "masked_lm/dense/kernel": [8, 4],
    "masked_lm/embedding_table": [20, 4],
    "masked_lm/layer_norm/beta": [4],
    "masked_lm/layer_norm/gamma": [4],
    "masked_lm/output_bias.Sbias": [20],
    "save_counter": [],
}


def weights_of(config, heads=(HEAD,)):
    rng = np.random.default_rng(0)
    shapes = encoder_shapes(config) | head_shapes(config, dict.fromkeys(heads))
    tensors = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    return ModelWeights(config, tensors, "test", {"30k-clean.model": b"pieces"})


def assert_same(returned, weights):
    assert returned.tensors.keys() == weights.tensors.keys()
    for name, array in weights.tensors.items():
        np.testing.assert_array_equal(returned.tensors[name], array)


def stand_in(config):
    """Returns a Keras model with the layers, names and outputs of their encoder."""
    size, inner, heads = config.hidden_size, config.intermediate_size, config.num_attention_heads
    layers = keras.layers

    class Position(layers.Layer):
        def build(self, shape):
            self.embeddings = self.add_weight("embeddings", (9, shape[-1]))

        def call(self, x):
            return tf.broadcast_to(self.embeddings[: tf.shape(x)[1]], tf.shape(x))

    class Block(layers.Layer):
        def build(self, shapes):
            self._attention_layer = layers.MultiHeadAttention(
                heads, size // heads, name="self_attention"
            )
            self._attention_layer_norm = norm("self_attention_layer_norm")
            self._intermediate_dense = layers.EinsumDense(
                "abc,cd->abd", (None, inner), bias_axes="d", name="intermediate"
            )
            self._output_dense = layers.EinsumDense(
                "abc,cd->abd", (None, size), bias_axes="d", name="output"
            )
            self._output_layer_norm = norm("output_layer_norm")

        def call(self, x, mask):
            x = self._attention_layer_norm(x + self._attention_layer(x, x, attention_mask=mask))
            hidden = keras.activations.gelu(self._intermediate_dense(x), approximate=True)
            return self._output_layer_norm(x + self._output_dense(hidden))

    def norm(name):
        return layers.LayerNormalization(epsilon=1e-12, name=name)

    def table(rows, name):
        return layers.Embedding(rows, config.embedding_size, name=name)

    ids, mask, types = (layers.Input((None,), dtype=tf.int32) for _ in range(3))
    words = table(config.vocab_size, "word_embeddings")(ids)
    positions = Position(name="position_embedding")(words)
    x = words + positions + table(2, "type_embeddings")(types)
    x = norm("embeddings/layer_norm")(x)
    x = layers.EinsumDense("...x,xy->...y", size, bias_axes="y", name="embedding_projection")(x)
    block = Block(name="transformer")
    for _ in range(config.num_hidden_layers):
        x = block(x, mask[:, None, :])
    pooled = layers.Dense(size, activation="tanh", name="pooler_transform")(x[:, 0, :])
    return keras.Model([ids, mask, types], [x, pooled])


@pytest.mark.parametrize("heads", [(), (HEAD,)])
@pytest.mark.parametrize("changes", [{}, {"embedding_size": 8, "hidden_act": "relu"}])
def test_there_and_back_is_the_same_model(changes, heads, tmp_path):
    weights = weights_of(CONFIG.replace(**changes), heads)
    tf_models.write(weights, tmp_path)
    assert tf_models.is_source(tmp_path)
    returned = tf_models.read(tmp_path)
    assert_same(returned, weights)
    assert returned.config == weights.config
    assert returned.tokenizer_files == weights.tokenizer_files


def test_keys_and_shapes_are_those_of_tensorflow_models(tmp_path):
    tf_models.write(weights_of(CONFIG), tmp_path)
    shapes = tf.train.load_checkpoint(str(tmp_path)).get_variable_to_shape_map()
    del shapes["_CHECKPOINTABLE_OBJECT_GRAPH"]
    end = "/.ATTRIBUTES/VARIABLE_VALUE"
    assert {name.removesuffix(end): shape for name, shape in shapes.items()} == KEYS


def test_a_keras_model_of_the_same_layers_restores_and_gives_the_same_outputs(tmp_path):
    weights = weights_of(CONFIG)
    tf_models.write(weights, tmp_path)
    model = stand_in(CONFIG)
    status = tf.train.Checkpoint(encoder=model).restore(str(tmp_path / "albert_model.ckpt-1"))
    status.assert_nontrivial_match()
    ids = np.random.default_rng(1).integers(0, 20, (2, 7))
    mask = np.array([[1, 1, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1, 1]])
    types = np.array([[0, 0, 0, 1, 1, 1, 1]] * 2)
    sequence, pooled = model([ids, mask, types])
    outputs = numpy_albert.encode(weights.tensors, CONFIG.to_dict(), ids, mask, types)
    np.testing.assert_allclose(sequence, outputs[0], atol=1e-5)
    np.testing.assert_allclose(pooled, outputs[1], atol=1e-5)


@pytest.mark.parametrize(
    "optimizer", [keras.optimizers.legacy.Adam(), keras.optimizers.experimental.AdamW()]
)
def test_a_keras_model_of_the_same_layers_is_read_without_its_optimizer(optimizer, tmp_path):
    model = stand_in(CONFIG)
    gradients = [tf.ones_like(weight) for weight in model.trainable_variables]
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    tf.train.Checkpoint(model=model, optimizer=optimizer).save(str(tmp_path / "ckpt"))
    CONFIG.save(tmp_path / "albert_config.json")
    ids, mask, types = np.arange(5)[None], np.ones((1, 5), int), np.zeros((1, 5), int)
    returned = tf_models.read(tmp_path / "ckpt-1.index")
    outputs = numpy_albert.encode(returned.tensors, CONFIG.to_dict(), ids, mask, types)
    np.testing.assert_allclose(model([ids, mask, types])[0], outputs[0], atol=1e-5)


@pytest.mark.parametrize(
    "change, named",
    [
        ({"pooler_transform/bias": "pooler/bias"}, "pooler_transform/bias: missing(.|\n)*pooler/"),
        ({"pooler_transform/bias": None}, "pooler_transform/bias: missing"),
        (
            {"pooler_transform/bias": np.zeros(9, "f")},
            r"pooler_transform/bias: expected shape \[8\]",
        ),
        (
            {"transformer/self_attention/key/kernel": np.zeros((8, 4, 2), "f")},
            r"key/kernel: expected shape \[8, 2, 4\], received \[8, 4, 2\]",
        ),
        (
            {"next_sentence/logits/bias": np.zeros(2, "f")},
            "next_sentence/logits/bias: unexpected tensor",
        ),
    ],
)
def test_a_wrong_tensor_is_named(change, named, tmp_path):
    tf_models.write(weights_of(CONFIG), tmp_path / "source")
    arrays = read_named_tensors(str(tmp_path / "source/albert_model.ckpt-1"))
    for name, value in change.items():
        old = arrays.pop(name, None)
        if value is not None:
            arrays[value if isinstance(value, str) else name] = (
                old if isinstance(value, str) else value
            )
    variables = [tf.Variable(array, name=name) for name, array in arrays.items()]
    tf.train.Checkpoint(layers=variables).save(str(tmp_path / "wrong/ckpt"))
    CONFIG.save(tmp_path / "albert_config.json")
    with pytest.raises(InputError, match=named):
        tf_models.read(tmp_path / "wrong")


@pytest.mark.parametrize(
    "changes, named",
    [
        ({"sharing": "attention"}, "sharing"),
        ({"num_hidden_groups": 3}, "num_hidden_groups"),
        ({"inner_group_num": 2}, "num_hidden_groups"),
        ({"hidden_act": "gelu_erf"}, "hidden_act"),
        ({"embedding_size": 8, "embedding_projection": "always"}, "embedding_projection"),
    ],
)
def test_what_their_encoder_cannot_be_is_refused(changes, named, tmp_path):
    with pytest.raises(InputError, match=f"`{named}`"):
        tf_models.write(weights_of(CONFIG.replace(**changes)), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_checkpoint_without_its_configuration_is_refused(tmp_path):
    tf_models.write(weights_of(CONFIG), tmp_path / "a/b")
    (tmp_path / "a/b/albert_config.json").unlink()
    with pytest.raises(InputError, match="albert_config.json"):
        tf_models.read(tmp_path / "a/b")


def test_heads_without_a_place_are_named(tmp_path, caplog):
    tf_models.write(weights_of(CONFIG, (HEAD, "cls/seq_relationship/output_bias")), tmp_path)
    assert "cls/seq_relationship/output_weights" in caplog.text
    assert tf_models.read(tmp_path).heads == ("masked_lm",)


def test_other_checkpoints_are_no_source(tmp_path):
    tf.train.Checkpoint(value=tf.Variable(1.0)).save(str(tmp_path / "ckpt"))
    assert not tf_models.is_source(tmp_path)
    assert not tf_models.is_source(tmp_path / "nothing")
