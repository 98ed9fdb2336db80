import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.keras_versions import name_of
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.shape import encoder_shapes
from albert_keras.sharing import layer_plan
from tests.albert_keras import numpy_albert
from tests.albert_keras.formats import random_weights
from tests.keras_line import IS_KERAS_3

SMALL = random_weights.SMALL | {"num_hidden_layers": 3}
#: Fields of AlbertConfig that change what is computed.
SHAPES = {
    "shared": {},
    "attention in groups": {"sharing": "attention", "num_hidden_groups": 2},
    "ffn": {"sharing": "ffn"},
    "unshared": {"sharing": "none"},
    "groups": {"num_hidden_layers": 2, "num_hidden_groups": 2, "inner_group_num": 2},
    "equal sizes": {"embedding_size": 8},
    "projected": {"embedding_size": 8, "embedding_projection": "always"},
    "rotary": {"position_embedding": "rotary"},
}
#: Full, padded at the right, at the left, and with holes.
MASK = np.array(
    [[1, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 1, 1], [1, 0, 1, 1, 0, 0, 1]]
)


def small_encoder(dtype="float32", recompute=False, skips_padding=False, **changes):
    encoder = AlbertEncoder(
        AlbertConfig(**SMALL | changes),
        seed=0,
        dtype=dtype,
        recompute=recompute,
        skips_padding=skips_padding,
    )
    numpy_albert.scramble(encoder)
    return encoder


def features():
    rng = np.random.default_rng(0)
    return {
        "input_ids": rng.integers(0, 50, MASK.shape),
        "input_mask": MASK,
        "segment_ids": rng.integers(0, 2, MASK.shape),
    }


@pytest.mark.parametrize("shape", SHAPES)
def test_outputs_are_those_of_numpy(shape):
    encoder, inputs = small_encoder(**SHAPES[shape]), features()
    outputs = encoder(inputs, return_all_layers=True, return_attention=True)
    weights, attention = numpy_albert.weights_by_name(encoder), []
    has_projection = any("embedding_hidden_mapping_in" in name for name in weights)
    assert has_projection == (shape != "equal sizes")
    sizes = dict(encoder.config)
    sequence, pooled, layers = numpy_albert.encode(weights, sizes, **inputs, attention=attention)
    np.testing.assert_allclose(outputs["sequence_output"], sequence, atol=1e-5)
    np.testing.assert_allclose(outputs["pooled_output"], pooled, atol=1e-5)
    found = *outputs["layer_outputs"], *outputs["attention"]
    for ours, theirs in zip(found, [*layers, *attention], strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    plain = encoder(inputs)["sequence_output"]
    np.testing.assert_array_equal(outputs["sequence_output"], plain)


def names_and_shapes(model):
    return {name_of(weight): tuple(weight.shape) for weight in model.weights}


@pytest.mark.parametrize("layers", [4, 22, 49])
def test_as_many_groups_as_layers_share_nothing(layers):
    plans = ({"num_hidden_groups": layers}, {"sharing": "none"})
    grouped, unshared = (
        layer_plan(AlbertConfig(num_hidden_layers=layers, **plan)) for plan in plans
    )
    assert grouped == unshared


def built_in_a_name_scope():
    with tf.name_scope("outer"):
        return AlbertEncoder(AlbertConfig(**SMALL), name="student")


def built_under_a_strategy():
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        return AlbertEncoder(AlbertConfig(**SMALL), dtype="mixed_bfloat16")


def built_inside_a_layer_of_a_functional_model():
    class Outer(keras.layers.Layer):
        def build(self, _):
            self.encoder = AlbertEncoder(AlbertConfig(**SMALL))

        def call(self, inputs):
            return self.encoder({"input_ids": inputs})["pooled_output"]

    inputs = keras.Input((7,), dtype="int32")
    return keras.Model(inputs, Outer()(inputs))


@pytest.mark.parametrize(
    "build",
    [built_in_a_name_scope, built_under_a_strategy, built_inside_a_layer_of_a_functional_model],
)
def test_weights_are_named_as_in_the_reference_wherever_they_are_made(build):
    assert names_and_shapes(build()) == encoder_shapes(AlbertConfig(**SMALL))


def test_equal_seeds_give_equal_weights_whatever_happened_before():
    first = AlbertEncoder(AlbertConfig(**SMALL), seed=3).get_weights()
    tf.random.normal((3,))
    second = AlbertEncoder(AlbertConfig(**SMALL), seed=3, name="other").get_weights()
    other = AlbertEncoder(AlbertConfig(**SMALL), seed=4).get_weights()
    assert all(map(np.array_equal, first, second))
    assert not np.array_equal(first[0], other[0])


def test_initial_weights_are_a_truncated_normal_with_zero_biases_and_unit_scales():
    encoder = AlbertEncoder(AlbertConfig.from_name("albert-tiny", initializer_range=0.1))
    for name, value in numpy_albert.weights_by_name(encoder).items():
        if name.endswith(("bias", "beta")):
            assert not value.any()
        elif name.endswith("gamma"):
            assert (value == 1).all()
        else:
            # Cut at two deviations, a normal keeps 0.88 of its deviation; Keras does not rescale.
            assert np.abs(value).max() <= 0.2
            assert value.std() == pytest.approx(0.088, rel=0.15)


def test_one_graph_serves_any_batch_and_length_and_refuses_too_long_ones():
    encoder, inputs = small_encoder(), features()
    graph = tf.function(
        lambda inputs: encoder(inputs)["sequence_output"],
        input_signature=[{key: tf.TensorSpec((None, None), tf.int64) for key in inputs}],
    )
    outputs = graph({key: tf.constant(value) for key, value in inputs.items()})
    np.testing.assert_allclose(outputs, encoder(inputs)["sequence_output"], atol=1e-6)
    short = {key: tf.constant(value[:1, :3]) for key, value in inputs.items()}
    assert graph(short).shape == (1, 3, 8)
    with pytest.raises(tf.errors.InvalidArgumentError, match="max_position_embeddings"):
        graph({key: tf.zeros((1, 10), tf.int64) for key in inputs})


def functional_model(encoder, length):
    names = ("input_ids", "input_mask", "segment_ids")
    inputs = {name: keras.Input((length,), dtype="int32", name=name) for name in names}
    return keras.Model(inputs, encoder(inputs)["pooled_output"])


@pytest.mark.parametrize("sharing, length", [("attention", 7), ("none", None)])
def test_a_functional_model_around_it_is_saved_and_loaded(tmp_path, sharing, length):
    encoder, inputs = small_encoder(sharing=sharing), features()
    model = functional_model(encoder, length)
    assert model.output_shape == (None, 8)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert names_and_shapes(loaded) == names_and_shapes(encoder)
    np.testing.assert_array_equal(loaded(inputs), encoder(inputs)["pooled_output"])


def test_a_frozen_encoder_stays_frozen(tmp_path):
    encoder = small_encoder()
    encoder.trainable = False
    model = functional_model(encoder, 7)
    model.save(tmp_path / "model.keras")
    for copy in (
        keras.models.load_model(tmp_path / "model.keras"),
        keras.models.clone_model(model),
    ):
        assert copy.weights and not copy.trainable_weights


def test_weights_are_float32():
    for dtype in ("bfloat16", "float64"):
        with pytest.raises(ValueError, match=f"weights in float32, .*Received: {dtype}"):
            small_encoder(dtype=dtype)


def test_training_applies_dropout_and_serving_does_not():
    encoder = small_encoder(hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5)
    served, trained = (
        encoder(features(), training=mode)["pooled_output"] for mode in (False, True)
    )
    assert np.abs(served - trained).max() > 1e-3
    plain = small_encoder(hidden_dropout_prob=0.0)(features())["pooled_output"]
    np.testing.assert_array_equal(served, plain)


def test_every_weight_gets_a_gradient_and_the_tables_a_dense_one():
    encoder = small_encoder()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(encoder(features(), training=True)["pooled_output"])
    gradients = tape.gradient(loss, encoder.trainable_variables)
    for variable, gradient in zip(encoder.trainable_variables, gradients, strict=True):
        assert isinstance(gradient, tf.Tensor), name_of(variable)
        assert gradient.shape == variable.shape


@pytest.mark.parametrize("training", [False, True])
def test_outputs_of_each_layer_say_which_token_matters(training):
    encoder = small_encoder(skips_padding=True)
    inputs = {name: values[:2] for name, values in features().items()}
    with tf.GradientTape() as tape:
        outputs = encoder(inputs, training=training, return_all_layers=True)
        layers = [outputs["embedding_output"], *outputs["layer_outputs"]]
        score = tf.reduce_sum(outputs["pooled_output"][:, :2])
    for gradient in tape.gradient(score, layers):
        is_used = np.linalg.norm(gradient, axis=-1) > 0
        assert is_used[:, 0].all() and not is_used[MASK[:2] == 0].any()


def test_mixed_precision_normalises_in_float32_and_multiplies_in_bfloat16():
    encoder = small_encoder("mixed_bfloat16")
    train = tf.function(lambda inputs: encoder(inputs, training=True))
    graph = train.get_concrete_function(features()).graph
    dtypes = {}
    for operation in graph.get_operations():
        dtypes.setdefault(operation.type, set()).update(t.dtype for t in operation.outputs)
    assert dtypes["Softmax"] == dtypes["Rsqrt"] == {tf.float32}
    assert dtypes["MatMul"] == dtypes["BatchMatMulV2"] == {tf.bfloat16}


@pytest.mark.skipif(not IS_KERAS_3, reason="Keras 2.15 has no quantization")
def test_quantization_by_keras_is_refused():
    with pytest.raises(ValueError, match="int8_from_float32.*precision=.int8"):
        AlbertEncoder(AlbertConfig(**SMALL), dtype="int8_from_float32")
    with pytest.raises(ValueError, match="Received: int8.*precision=.int8"):
        AlbertEncoder(AlbertConfig(**SMALL)).quantize("int8")
