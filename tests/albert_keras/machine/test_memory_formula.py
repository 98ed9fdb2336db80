"""Memory and weights by formula: as by hand, as in the model, as measured."""

import math

import pytest

from albert_keras.config import AlbertConfig
from albert_keras.keras_versions import name_of
from albert_keras.machine.step_memory import step_memory
from albert_keras.models.weight_count import count_weights

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


def test_a_small_model_has_the_weights_counted_by_hand():
    counted = count_weights(SMALL)
    assert counted.embeddings == (11 + 8 + 2) * 3 + 2 * 3 + 3 * 4 + 4
    assert counted.blocks == (4 * (16 + 4) + 8) + (2 * 20 + 5 + 4 + 8)
    assert (counted.pooler, counted.masked_lm_head, counted.sentence_head) == (20, 32, 10)
    assert counted.total == sum(counted) == 292
    assert count_weights(SMALL, False, False).total == 292 - 32 - 10


@pytest.mark.parametrize(
    "sharing, layers, groups, inner", [("all", 4, 2, 2), ("ffn", 4, 2, 2), ("none", 2, 1, 1)]
)
def test_gradients_wait_for_each_use_of_the_blocks_of_the_model(sharing, layers, groups, inner):
    from albert_keras.models.encoder import AlbertEncoder

    config = SMALL.replace(
        sharing=sharing, num_hidden_layers=layers, num_hidden_groups=groups, inner_group_num=inner
    )
    blocks = {"attention": {}, "feed_forward": {}}  # number of weights by scope
    for weight in AlbertEncoder(config).weights:
        scope, _, name = name_of(weight).partition("/inner_group_")
        if not name:
            continue
        # The first normalisation belongs to attention, the second to the feed-forward block.
        is_attention = "attention" in name or "LayerNorm/" in name and "LayerNorm_1" not in name
        part = blocks["attention" if is_attention else "feed_forward"]
        key = f"{scope}/{name.partition('/')[0]}"
        part[key] = part.get(key, 0) + math.prod(weight.shape)
    waiting = 0
    for part in blocks.values():
        uses = layers * inner // len(part)
        waiting += (inner if uses > 1 else 1) * min(uses, 4) * max(part.values())
    assert step_memory(config, 2, 6, 1).gradients == 4 * waiting


def test_a_block_keeps_what_is_counted_by_hand():
    # B = 2, S = 6: 8 of [2, 6, 4], 1 of [2, 6, 5], 1 of [2, 2, 6, 6], 2 scales of [2, 6].
    kept = 4 * (8 * 48 + 60 + 144 + 2 * 12)
    assert step_memory(SMALL, 2, 6, 1).kept == 2 * kept


def test_memory_of_block_sparse_attention_is_linear_in_the_length():
    config = AlbertConfig.from_name("albert-mini", max_position_embeddings=65_536)
    sparse = config.replace(attention="block-sparse")
    kept = [step_memory(sparse, 1, length, 1).kept for length in (8192, 16_384)]
    assert kept[1] == pytest.approx(2 * kept[0], rel=0.02)
    assert step_memory(config, 1, 16_384, 1).kept > 10 * kept[1]
    assert step_memory(sparse, 2, 448, 1) == step_memory(config, 2, 448, 1)  # 7 blocks are all


def test_the_peak_is_the_backward_pass_or_the_update():
    config = SMALL.replace(vocab_size=1000)
    small, large = step_memory(config, 1, 6, 1), step_memory(config, 1000, 6, 1)
    assert small.step == small.update > small.kept + small.working + small.gradients
    assert large.step == large.kept + large.working + large.gradients > large.update
    assert large.total == large.process + large.weights + large.moments + large.step


@pytest.mark.slow
def test_long_sequences_take_about_the_memory_of_short_ones():
    from tests.benchmarks.measure import in_new_process
    from tests.benchmarks.shapes import make_shape
    from tests.benchmarks.trainers import measure_step

    measured = {}
    for batch_size, length, attention in ((8, 512, "dense"), (1, 4096, "block-sparse")):
        shape = make_shape("albert-mini", batch_size, length)
        config = shape.config.replace(max_position_embeddings=4096, attention=attention)
        shape = shape._replace(config=config)
        measured[length] = in_new_process(measure_step, shape, "float32", {})
        lengths = length, shape.predictions
        computed = step_memory(config, batch_size, *lengths).total / 1e6
        assert computed == pytest.approx(measured[length]["peak_mb"], rel=0.15)
    for name in ("peak_mb", "step_mb"):
        assert measured[4096][name] < 1.3 * measured[512][name]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name, batch_size, length",
    [("albert-tiny", 64, 256), ("albert-mini", 32, 256), ("albert-base", 8, 128)],
)
def test_the_formula_is_what_is_measured_within_15_percent(name, batch_size, length):
    from tests.benchmarks.measure import in_new_process
    from tests.benchmarks.shapes import make_shape
    from tests.benchmarks.trainers import measure_step

    shape = make_shape(name, batch_size, length)
    measured = in_new_process(measure_step, shape, "float32", {})
    lengths = shape.max_seq_length, shape.predictions
    computed = step_memory(shape.config, batch_size, *lengths)
    assert computed.total / 1e6 == pytest.approx(measured["peak_mb"], rel=0.15)
