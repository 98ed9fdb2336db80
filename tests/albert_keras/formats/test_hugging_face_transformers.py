"""What we write against transformers itself, in a Python that has it.

That is this one, or the one that ALBERT_KERAS_TRANSFORMERS_PYTHON names. What transformers writes
is in `numbers_of_transformers.npz`.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from albert_keras.formats import hugging_face
from tests.albert_keras.formats import random_weights
from tests.albert_keras.formats.random_weights import pretraining_model, pretraining_weights

pytestmark = pytest.mark.slow

SIZES = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 512,
}
ALBERT = SIZES | {"embedding_size": 16}
BERT = SIZES | {"embedding_size": 32, "sharing": "none"}
ROBERTA = SIZES | random_weights.ROBERTA | {"embedding_size": 32}
DISTILBERT = SIZES | random_weights.DISTILBERT | {"embedding_size": 32}
CASES = {
    "albert": ALBERT,
    "albert-groups": ALBERT | random_weights.GROUPS,
    "albert-erf": ALBERT | {"hidden_act": "gelu_erf"},
    "albert-not-shared": ALBERT | {"sharing": "none"},
    "bert": BERT | {"hidden_act": "gelu_erf"},
    "bert-tanh": BERT | {"hidden_act": "gelu"},
    "roberta": ROBERTA,
    "roberta-two-types": ROBERTA | {"type_vocab_size": 2, "position_offset": 5},
    "distilbert": DISTILBERT,
    "distilbert-tanh": DISTILBERT | {"hidden_act": "gelu"},
}
OUTPUTS = {
    "logits": "masked_lm_logits",
    "prediction_logits": "masked_lm_logits",
    "sop_logits": "sentence_order_logits",
    "seq_relationship_logits": "sentence_order_logits",
    "sequence_output": "sequence_output",
}


def find_python():
    if importlib.util.find_spec("torch") and importlib.util.find_spec("transformers"):
        return sys.executable
    return os.environ.get("ALBERT_KERAS_TRANSFORMERS_PYTHON")


def features(length, config):
    """Returns two rows; of the first half is padding on the left, of the second on the right."""
    rng = np.random.default_rng(length)
    mask = np.ones((2, length), np.int64)
    mask[0, : length // 2] = mask[1, length - length // 2 :] = 0
    ids = rng.integers(6, 60, (2, length))
    offset, types = config.get("position_offset", 0), config.get("type_vocab_size", 2)
    return {
        "input_ids": np.where(mask == 1, ids, offset - 1) if offset else ids,
        "attention_mask": mask,
        "token_type_ids": rng.integers(0, max(1, types), (2, length)),
    }


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Writes our models and lets transformers answer: the folder of it."""
    python = find_python()
    if python is None:
        pytest.skip("needs transformers: ALBERT_KERAS_TRANSFORMERS_PYTHON names a Python with it")
    work, jobs = tmp_path_factory.mktemp("transformers"), []
    for case, config in CASES.items():
        (work / case).mkdir()
        hugging_face.write(pretraining_weights(**config), work / case, {})
        for length in (1, 7, 512):
            inputs, outputs = work / f"in-{case}-{length}.npz", work / f"{case}-{length}.npz"
            np.savez(inputs, **features(length, config))
            files = {"folder": work / case, "inputs": inputs, "outputs": outputs}
            jobs.append({name: str(path) for name, path in files.items()})
    (work / "jobs.json").write_text(json.dumps(jobs))
    program = Path(__file__).with_name("run_transformers.py")
    command = [python, program, work / "jobs.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=work)
    assert done.returncode == 0, done.stderr[-3000:]
    return work


@pytest.mark.parametrize("case", CASES)
def test_outputs_are_those_of_transformers(work, case):
    model = pretraining_model(hugging_face.read(work / case))
    for length in (1, 7, 512):
        inputs = features(length, CASES[case])
        answer = model(
            {
                "input_ids": inputs["input_ids"],
                "input_mask": inputs["attention_mask"],
                "segment_ids": inputs["token_type_ids"],
                "masked_lm_positions": np.tile(np.arange(length), (2, 1)),
            }
        )
        theirs = np.load(work / f"{case}-{length}.npz")
        assert len(theirs) == (3 if case.startswith(("albert", "bert")) else 2)
        for name, expected in theirs.items():
            ours = answer[OUTPUTS[name]].numpy()
            np.testing.assert_allclose(ours, expected, atol=1e-5, rtol=0, err_msg=name)
