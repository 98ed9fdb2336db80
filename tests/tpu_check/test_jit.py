"""The training step under XLA, on one CPU device: what a TPU makes of it, it computes alike."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.training.build import build_pretraining
from tests.tpu_check.program import Program

MODEL = {
    "size": "albert-tiny",
    "num_hidden_layers": 1,
    "hidden_size": 32,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "embedding_size": 16,
    "max_position_embeddings": 64,
}
BATCH, LENGTH, VOCABULARY = 4, 16, 100


@pytest.fixture
def features():
    generator = np.random.default_rng(5)
    shapes = Program(batch=BATCH, sequence_length=LENGTH).features()
    limits = {
        "input_ids": VOCABULARY,
        "masked_lm_ids": VOCABULARY,
        "masked_lm_positions": LENGTH,
    }
    values = {
        name: generator.integers(0, limits.get(name, 2), shape).astype(dtype)
        for name, (dtype, shape) in shapes.items()
    }
    lengths = generator.integers(LENGTH // 2, LENGTH + 1, [BATCH, 1])
    values["input_mask"] = (np.arange(LENGTH) < lengths).astype(np.int32)  # padded at the end
    values["example_weights"][:] = 1
    return {name: tf.constant(value) for name, value in values.items()}


def run(features, jit_compile, steps=3, **program):
    """Trains for some steps: losses of each, and the weights in the end."""
    program = Program(
        model=MODEL, batch=BATCH, sequence_length=LENGTH, replicas=1, replicas_per_chip=1, **program
    )
    config = program.config()
    optimizer = config.optimizer.replace(lr=0.02, warmup_steps=0)
    step = build_pretraining(config.replace(optimizer=optimizer), config.albert_config(VOCABULARY))
    train_step = tf.function(step.train_step, jit_compile=jit_compile)
    losses = []
    for _ in range(steps):
        step.reset_metrics()
        losses.append(float(train_step(features)["loss"]))
    return losses, [weight.numpy() for weight in step.trainable_variables]


CASES = [
    {"precision": "mixed_bfloat16"},
    {"precision": "float32", "accumulation": 2, "recompute": True},
]


@pytest.mark.slow
@pytest.mark.parametrize("program", CASES, ids=lambda case: case["precision"])
def test_the_compiled_step_computes_what_the_step_computes(program, features):
    losses, weights = run(features, jit_compile=False, **program)
    compiled_losses, compiled_weights = run(features, jit_compile=True, **program)
    is_exact = program["precision"] == "float32"
    np.testing.assert_allclose(compiled_losses, losses, rtol=1e-4 if is_exact else 1e-2)
    assert losses[2] < losses[1] < losses[0]
    if is_exact:
        for compiled, weight in zip(compiled_weights, weights, strict=True):
            np.testing.assert_allclose(compiled, weight, atol=1e-3)
