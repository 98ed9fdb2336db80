"""The training steps of a contest: ours and that of transformers, one update per run.

A function loads its library itself, since each contestant runs in a process of its own.
"""

import numpy as np

from tests.benchmarks.contest import Prepared
from tests.benchmarks.shapes import Shape

_OUR_LEARNING_RATE, _LEARNING_RATE = 1e-3, 1e-4


def synthetic_batch(shape: Shape, seed: int = 0) -> dict[str, np.ndarray]:
    """Samples a batch of int32 arrays.

    `input_ids`, `segment_ids`, `input_mask` (all 1) are [B, S]; `masked_lm_positions`, in each row
    different and in order, and `masked_lm_ids` are [B, P].
    """
    rng = np.random.default_rng(seed)
    rows, length, predictions = shape.batch_size, shape.max_seq_length, shape.predictions
    positions = rng.permuted(np.tile(np.arange(length), (rows, 1)), axis=1)
    values = {
        "input_ids": rng.integers(0, shape.config.vocab_size, (rows, length)),
        "segment_ids": np.arange(length)[None] >= rng.integers(1, length + 1, (rows, 1)),
        "input_mask": np.ones((rows, length)),
        "masked_lm_positions": np.sort(positions[:, :predictions], axis=1),
        "masked_lm_ids": rng.integers(0, shape.config.vocab_size, (rows, predictions)),
    }
    return {name: value.astype(np.int32) for name, value in values.items()}


def our_features(shape: Shape) -> dict:
    """Returns the features of `synthetic_batch` for our step, as tensors."""
    import tensorflow as tf

    features = {name: tf.constant(values) for name, values in synthetic_batch(shape).items()}
    return features | {
        "masked_lm_weights": tf.ones([shape.batch_size, shape.predictions]),
        "sentence_order_labels": tf.zeros([shape.batch_size], tf.int32),
        "example_weights": tf.ones([shape.batch_size]),
    }


def prepare_ours(
    shape: Shape, precision: str, settings: dict | None = None, optimizer: str = "lamb"
) -> Prepared:
    """Builds our step as `pretrain` runs it: clipped gradients, spikes skipped.

    The loss is the masked-LM loss only. `settings` are more fields of
    `TrainingConfig`, such as `recompute`.
    """
    import tensorflow as tf

    from albert_keras.training.build import build_pretraining
    from albert_keras.training.config import PretrainingConfig
    from albert_keras.training.strategy import build_strategy, choose_precision

    config = PretrainingConfig.of(
        {
            "training": {"sentence_order_weight": 0.0, "precision": precision, **(settings or {})},
            "optimizer": {
                "name": optimizer,
                "lr": _OUR_LEARNING_RATE,
                "power": 0.0,
                "warmup_steps": 0,
            },
        },
        batch_size=shape.batch_size,
    )
    config = config.resolved(choose_precision(build_strategy("single")))
    step = build_pretraining(config, shape.config)
    features = our_features(shape)
    function = step.make_train_function()
    facts = {"weights": sum(int(tf.size(weight)) for weight in step.trainable_variables)}

    def run():
        step.reset_metrics()  # so that the loss is that of this update
        _note_loss(facts, float(function(iter([features]))["loss"]))

    if tf.config.list_physical_devices("GPU"):
        memory = tf.config.experimental.get_memory_info
        return Prepared(run, facts, lambda: memory("GPU:0")["peak"] / 1e6)
    return Prepared(run, facts)


def prepare_transformers(shape: Shape, precision: str) -> Prepared:
    """Builds `AlbertForMaskedLM`, its loss through `torch.compile`, and torch.optim.AdamW.

    It runs on a GPU if PyTorch finds one. `precision` is "float32", or "mixed_bfloat16" for
    PyTorch's autocast. Only masked positions are scored, which the library leaves to its users: it
    scores the vocabulary at all positions.
    """
    import torch

    from albert_keras.formats.hugging_face_config import to_values
    from tests.benchmarks import torch_albert

    model = torch_albert.masked_lm(to_values(shape.config, ("masked_lm",)), seed=0)
    torch.set_float32_matmul_precision("high")  # TF32 on a GPU, as TensorFlow has it
    is_on_gpu = torch_albert.device() == "cuda"
    optimizer = torch.optim.AdamW(model.parameters(), lr=_LEARNING_RATE, fused=is_on_gpu)
    batch = torch_albert.to_tensors(synthetic_batch(shape))

    def loss_at_masked():
        scores = torch_albert.scores_at_masked(model, batch)
        targets = batch["masked_lm_ids"].flatten()
        return torch.nn.functional.cross_entropy(scores.flatten(0, 1), targets)

    loss_of = torch.compile(loss_at_masked)
    facts = {"weights": sum(weight.numel() for weight in model.parameters())}

    def run():
        optimizer.zero_grad()
        with torch_albert.autocast(precision):
            loss = loss_of()
        loss.backward()
        optimizer.step()
        _note_loss(facts, loss.item())

    if is_on_gpu:
        return Prepared(run, facts, lambda: torch.cuda.max_memory_allocated() / 1e6)
    return Prepared(run, facts)


def _note_loss(facts, loss):
    """Keeps the first and the last loss, which show that a contestant really trains."""
    facts.setdefault("first_loss", loss)
    facts["last_loss"] = loss
