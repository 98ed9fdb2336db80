"""Runs that several files share, and what their tests leave out."""

import pytest

from albert_keras.training.pretrain import pretrain
from data_pipeline.building.build import build_records
from data_pipeline.text.corpus import Document


@pytest.fixture(scope="session")
def hard_training(tiny_training):
    """Returns settings with everything that could go astray: dropout, parts, dynamic masks.

    LAMB needs the whole gradient of a matrix for its trust ratio.
    """
    values = tiny_training.model_dump(exclude_unset=True)
    values["model"] |= {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    values["model"] |= {"num_hidden_layers": 1}
    values["training"] |= {
        "steps": 14,
        "batch_size": 64,
        "accumulation_steps": 2,
        "masks": "dynamic",
        "checkpoint_every": 4,
        "report_every": 5,
        "skip_spikes": True,
    }
    values["optimizer"] = {"name": "lamb", "lr": 0.005, "warmup_steps": 2}
    return type(tiny_training)(**values)


@pytest.fixture(scope="session")
def train(tiny_records):
    """Returns a function that trains a run for several tests: (folder, settings, ...) -> folder."""

    def train(out, config, **others):
        return pretrain(tiny_records, out, config, **others).path

    return train


@pytest.fixture(scope="session")
def straight_run(train, hard_training, made_once):
    """Returns a run of `hard_training` that was not interrupted."""
    return made_once("straight-run", lambda out: train(out, hard_training))


@pytest.fixture(scope="session")
def mixed_records(tiny_documents, tiny_tokenizer, tiny_data_config, tmp_path_factory):
    """Returns records of two documents of `tiny_records` and of one that is not among them."""
    new = [f"{sentence[:-1]} twice a year." for sentence in tiny_documents[5].paragraphs]
    documents = [*tiny_documents[:2], Document("new", tuple(new))]
    out = tmp_path_factory.mktemp("mixed") / "records"
    return build_records(documents, tiny_tokenizer, out, tiny_data_config.replace(copies=1)).path
