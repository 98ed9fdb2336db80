"""A run trained on the small corpus, its export, and its weights as the reference saves them."""

import shutil
import warnings

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.formats.open_weights import open_weights
from albert_keras.runs.tensors import write_tensors
from albert_keras.serving.publish import export
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.pretrain import pretrain
from tests.albert_keras.loaded_weights import QUERY, values_of
from tests.albert_keras.serving.contract_model import save_contract_model
from tests.albert_keras.serving.local.running import running


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
        },
        optimizer={"lr": 0.01, "warmup_steps": 2},
    )


@pytest.fixture(scope="session")
def tiny_run(tiny_records, tiny_training, made_once):
    """Returns the folder of a finished run; tests that change it copy it first."""
    return made_once("tiny-run", lambda folder: pretrain(tiny_records, folder, tiny_training))


@pytest.fixture
def eagerly(request):
    """Builds no graphs, which takes longer than a few steps of a small model."""
    warnings.filterwarnings("ignore", "Even though the `tf.config")  # for this test
    tf.config.run_functions_eagerly(getattr(request, "param", True))
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def unfinished_run(tiny_run, tmp_path):
    """Returns a copy of the small run as if it had been killed before it saved its last step, 12.

    Its log has all lines; its newest checkpoint is from step 10.
    """
    run = shutil.copytree(tiny_run, tmp_path / "run")
    shutil.rmtree(run / "checkpoints" / "step-00000012")
    return run


@pytest.fixture(scope="session")
def tiny_export(tiny_run, made_once):
    """Returns the folder of a name with one version."""
    return made_once("tiny", lambda folder: export(tiny_run, folder))


@pytest.fixture(scope="session")
def pretrained(tiny_run):
    """Returns the model of the small run as it was after its last step."""
    return open_weights(tiny_run, 12).build()


@pytest.fixture(scope="session")
def tokenizer_files(tiny_tokenizer, tmp_path_factory):
    """Returns the files of the tokenizer of the small corpus: dict of name -> bytes."""
    folder = tmp_path_factory.mktemp("tokenizer")
    tiny_tokenizer.save(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture(scope="session")
def word_pieces():
    """Returns the content of a `vocab.txt` of 307 word pieces."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = [chr(97 + number % 26) for number in range(26)]
    words = [f"{first}{second}" for first in letters for second in letters]
    pieces = special + letters + [f"##{letter}" for letter in letters] + words
    return "".join(f"{piece}\n" for piece in pieces[:307]).encode()


@pytest.fixture
def foreign(tmp_path, tiny_tokenizer, pretrained):
    """Returns a function that writes a checkpoint as the reference does; gives its prefix."""

    def write(change=lambda tensors: None, tokenizer=tiny_tokenizer):
        pretrained.config.save(tmp_path / "albert_config.json")
        if tokenizer is not None:
            (tmp_path / "spm.model").write_bytes(tokenizer.model_bytes)
        tensors = values_of(pretrained)
        tensors[f"{QUERY}/adam_m"] = np.zeros((2, 2), np.float32)
        change(tensors)
        write_tensors(tmp_path / "model.ckpt-best", tensors)
        return tmp_path / "model.ckpt-best"

    return write


@pytest.fixture(scope="session")
def contract_export(tmp_path_factory):
    """Returns the folder of a model, `books`, with the versions 2 (empty) and 3."""
    folder = tmp_path_factory.mktemp("exports") / "books"
    (folder / "2").mkdir(parents=True)
    save_contract_model(folder / "3", mark=3.0)
    return folder


@pytest.fixture(scope="session")
def server(contract_export):
    """Returns a LocalServer of `contract_export` that answers."""
    with running([contract_export]) as server:
        yield server
