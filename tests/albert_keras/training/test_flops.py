"""Operations are counted as by hand, as published, and as in the graph that runs."""

import math

import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.shape import forward_flops, training_flops

#: V = 11, E = 3, H = 4, L = 2, I = 5.
SMALL = AlbertConfig(
    vocab_size=11,
    embedding_size=3,
    hidden_size=4,
    num_hidden_layers=2,
    num_attention_heads=2,
    intermediate_size=5,
    max_position_embeddings=8,
)


def test_a_small_model_has_the_operations_counted_by_hand():
    # B = 2, S = 6, P = 1: 12 positions, 2 predictions.
    projection = 2 * 12 * 3 * 4  # 288
    block = 4 * (2 * 12 * 4 * 4) + 2 * (2 * 12 * 4 * 5) + 2 * (2 * 2 * 6 * 6 * 4)  # 3648
    masked_lm = 2 * 2 * 4 * 3 + 2 * 2 * 3 * 11  # 180
    sentence_order = 2 * 2 * 4 * 4 + 2 * 2 * 4 * 2  # 96
    assert forward_flops(SMALL, 2, 6) == projection + 2 * block == 7584
    assert training_flops(SMALL, 2, 6, 1) == 3 * (7584 + masked_lm + sentence_order) == 23_580
    assert training_flops(SMALL, 2, 6, 1, sentence_head=False) == 3 * (7584 + masked_lm)


def test_block_sparse_attention_is_counted_by_its_blocks():
    # Of 8 blocks of 2 positions the first one attends to 8 blocks, the others to 3.
    sparse = SMALL.replace(
        max_position_embeddings=16,
        attention="block-sparse",
        attention_block_size=2,
        attention_window_blocks=1,
        attention_random_blocks=1,
    )
    keys = (8 * 2 + 7 * 3 * 2) / 8
    assert sparse.attended_keys(16) == math.ceil(keys) == 8
    less = 2 * 2 * (2 * 2 * 16 * (16 - 8) * 4)  # two depths, B = 2
    assert forward_flops(SMALL, 2, 16) - forward_flops(sparse, 2, 16) == less
    assert forward_flops(SMALL, 2, 6) == forward_flops(sparse, 2, 6)  # 3 blocks are all


def test_the_graph_of_a_step_holds_the_products_that_are_counted():
    model = AlbertForPretraining(SMALL)

    @tf.function
    def gradients(input_ids, positions):
        with tf.GradientTape() as tape:
            results = model({"input_ids": input_ids, "masked_lm_positions": positions})
            loss = tf.reduce_sum(results["masked_lm_logits"])
            loss += tf.reduce_sum(results["sentence_order_logits"])
        return tape.gradient(loss, model.trainable_variables)

    shapes = tf.TensorSpec([2, 6], tf.int32), tf.TensorSpec([2, 1], tf.int32)
    operations = gradients.get_concrete_function(*shapes).graph.get_operations()
    products = [operation for operation in operations if "MatMul" in operation.type]
    assert sum(map(flops_of, products)) == training_flops(SMALL, 2, 6, 1)


def flops_of(product):
    is_batched = product.type != "MatMul"
    is_transposed = product.get_attr("adj_x" if is_batched else "transpose_a")
    inner_size = product.inputs[0].shape[-2 if is_transposed else -1]
    return 2 * product.outputs[0].shape.num_elements() * inner_size
