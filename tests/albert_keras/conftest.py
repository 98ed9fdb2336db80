"""Records of a small corpus, and a run trained on them."""

import pytest

from albert_keras.training.config import PretrainingConfig
from albert_keras.training.pretrain import pretrain
from data_pipeline.build import build_records
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.corpus import Document


@pytest.fixture(scope="session")
def tiny_records(tiny_corpus, tiny_tokenizer, tmp_path_factory):
    """Returns a folder of records, S 32."""
    documents = [
        Document(f"document {number}", tuple(tiny_corpus[number * 12 : number * 12 + 12]))
        for number in range(29)
    ]
    config = PretrainingDataConfig(max_seq_length=32, num_shards=2)
    out = tmp_path_factory.mktemp("records") / "records"
    return build_records(documents, tiny_tokenizer, out, config).path


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
        training={"steps": 12, "batch_size": 8, "checkpoint_every": 5, "report_every": 4},
        optimizer={"lr": 0.01, "warmup_steps": 2},
    )


@pytest.fixture(scope="session")
def tiny_run(tiny_records, tiny_training, tmp_path_factory):
    """Returns the folder of a finished run; tests that change it copy it first."""
    return pretrain(tiny_records, tmp_path_factory.mktemp("runs") / "tiny", tiny_training).path
