"""A run trained on the small corpus."""

import pytest

from albert_keras.training.config import PretrainingConfig
from albert_keras.training.pretrain import pretrain


@pytest.fixture(scope="session")
def tiny_training():
    """Returns settings for twelve steps of a model that trains in a second."""
    return PretrainingConfig(
        model={
            "size": "albert-tiny",
            "hidden_size": 32,
            "num_attention_heads": 2,
            "intermediate_size": 64,
            "embedding_size": 16,
            "max_position_embeddings": 64,
        },
        training={
            "steps": 12,
            "batch_size": 8,
            "checkpoint_every": 5,
            "report_every": 4,
            "precision": "float32",
            "peak_tflops": 1.0,
        },
        optimizer={"lr": 0.01, "warmup_steps": 2},
    )


@pytest.fixture(scope="session")
def tiny_run(tiny_records, tiny_training, made_once):
    """Returns the folder of a finished run; tests that change it copy it first."""
    return made_once("tiny-run", lambda folder: pretrain(tiny_records, folder, tiny_training))
