"""Both directions against transformers itself, in a Python that has it.

That is this one, or the one that ALBERT_KERAS_TRANSFORMERS_PYTHON names.
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
from tests.albert_keras.formats.random_weights import (
    assert_same_weights,
    pretraining_model,
    pretraining_weights,
    task_weights,
)
from tests.albert_keras.tasks.small_tasks import build_model

pytestmark = pytest.mark.slow

SIZES = {
    "vocab_size": 60,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 512,
}
ALBERT = SIZES | {"embedding_size": 16, "num_hidden_layers": 2}
BERT = SIZES | {"embedding_size": 32, "num_hidden_layers": 2, "sharing": "none"}
ROBERTA = SIZES | random_weights.ROBERTA | {"embedding_size": 32, "num_hidden_layers": 2}
DISTILBERT = SIZES | random_weights.DISTILBERT | {"embedding_size": 32, "num_hidden_layers": 2}
CASES = {
    "albert": ALBERT,
    "albert-groups": ALBERT
    | {"num_hidden_layers": 4, "num_hidden_groups": 2, "inner_group_num": 2},
    "albert-erf": ALBERT | {"hidden_act": "gelu_erf"},
    "albert-not-shared": ALBERT | {"sharing": "none"},
    "bert": BERT | {"hidden_act": "gelu_erf"},
    "bert-tanh": BERT | {"hidden_act": "gelu"},
    "roberta": ROBERTA,
    "roberta-two-types": ROBERTA | {"type_vocab_size": 2, "position_offset": 5},
    "distilbert": DISTILBERT,
    "distilbert-tanh": DISTILBERT | {"hidden_act": "gelu"},
}
MODELS = {"Albert": ALBERT, "Bert": BERT, "Roberta": ROBERTA, "DistilBert": DISTILBERT}
#: Kind of task -> outputs, labels, and their class where it is not the usual one.
TASKS = {
    "classification": (3, ("a", "b", "c"), None),
    "regression": (1, (), None),
    "tagging": (4, (), "ForTokenClassification"),
    "spans": (0, (), None),
}
THEIR_ACTIVATIONS = {"gelu": "gelu_pytorch_tanh", "gelu_erf": "gelu", "relu": "relu"}
#: Keys of ours -> of a DistilBERT.
DISTILBERT_KEYS = {
    "vocab_size": "vocab_size",
    "hidden_size": "dim",
    "num_hidden_layers": "n_layers",
    "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim",
    "max_position_embeddings": "max_position_embeddings",
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


def written_task(folder, model, kind):
    """Writes a fine-tuned model of ours and returns it as ModelWeights."""
    number, labels, name = TASKS[kind]
    weights = task_weights(kind, number, labels, **MODELS[model])
    if name:
        foreign = {"architectures": [model + name]}
        weights = weights._replace(config=weights.config.replace(foreign_keys=foreign))
    if kind in ("tagging", "spans") and weights.config.pooler == "always":  # no pooler there
        for part in ("kernel", "bias"):
            weights.tensors[f"bert/pooler/dense/{part}"][:] = 0
    folder.mkdir(exist_ok=True)
    hugging_face.write(weights, folder)
    return weights


def made_there(case):
    """Returns the class and the configuration of what transformers makes."""
    config, kind = CASES[case], case.partition("-")[0]
    activation = THEIR_ACTIVATIONS[config.get("hidden_act", "gelu")]
    if kind == "distilbert":
        theirs = {name: config[ours] for ours, name in DISTILBERT_KEYS.items()}
        return ["DistilBertForMaskedLM", theirs | {"activation": activation}]
    left_out = ("sharing",) if kind == "albert" else ("sharing", "embedding_size")
    left_out += ("pooler", "position_offset", "layer_norm_epsilon", "position_embedding")
    theirs = {name: value for name, value in config.items() if name not in left_out}
    theirs["hidden_act"] = activation
    if kind == "roberta":
        offset = config["position_offset"]
        theirs |= {"pad_token_id": offset - 1, "max_position_embeddings": 512 + offset}
        theirs |= {"layer_norm_eps": 1e-5, "type_vocab_size": config["type_vocab_size"] or 1}
        return ["RobertaForMaskedLM", theirs]
    return ["BertForPreTraining" if kind == "bert" else "AlbertForPreTraining", theirs]


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """Writes our models and lets transformers make its own and ask all: the folder of it."""
    python = find_python()
    if python is None:
        pytest.skip("needs transformers: ALBERT_KERAS_TRANSFORMERS_PYTHON names a Python with it")
    work, jobs = tmp_path_factory.mktemp("transformers"), []
    for case, config in CASES.items():
        ours = work / f"{case}-ours"
        ours.mkdir()
        hugging_face.write(pretraining_weights(**config), ours)
        for length in (1, 7, 512):
            inputs = work / f"inputs-{case}-{length}.npz"
            np.savez(inputs, **features(length, config))
            for folder in (ours, work / f"{case}-theirs"):
                is_first = folder is not ours and length == 1
                jobs.append(
                    {
                        "folder": str(folder),
                        "make": made_there(case) if is_first else None,
                        "inputs": str(inputs),
                        "outputs": f"{folder}-{length}.npz",
                    }
                )
    for model in MODELS:
        inputs = work / f"inputs-{model}.npz"
        np.savez(inputs, **features(7, MODELS[model]))
        for kind in TASKS:
            folder = work / f"{model}-{kind}"
            written_task(folder, model, kind)
            jobs.append(
                {
                    "folder": str(folder),
                    "make": None,
                    "inputs": str(inputs),
                    "outputs": f"{folder}.npz",
                }
            )
    (work / "jobs.json").write_text(json.dumps(jobs))
    program = Path(__file__).with_name("run_transformers.py")
    command = [python, program, work / "jobs.json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=work)
    assert done.returncode == 0, done.stderr[-3000:]
    return work


@pytest.mark.parametrize("maker", ["ours", "theirs"])
@pytest.mark.parametrize("case", CASES)
def test_outputs_are_those_of_transformers(work, case, maker):
    folder = work / f"{case}-{maker}"
    model = pretraining_model(hugging_face.read(folder))
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
        compared = 0
        for name, theirs in np.load(f"{folder}-{length}.npz").items():
            ours = answer[OUTPUTS[name]].numpy()
            np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=0, err_msg=name)
            compared += 1
        assert compared == (3 if case.startswith(("albert", "bert")) else 2)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", TASKS)
def test_scores_of_tasks_are_those_of_transformers(work, tmp_path, model, kind):
    weights = written_task(tmp_path / "source", model, kind)
    ours = build_model(kind, weights.config, TASKS[kind][0], dtype="float32")
    ours.set_weights([weights.tensors[w.name.removesuffix(":0")] for w in ours.weights])
    inputs = features(7, MODELS[model])
    answer = ours(
        {
            "input_ids": inputs["input_ids"],
            "input_mask": inputs["attention_mask"],
            "segment_ids": inputs["token_type_ids"],
        }
    )
    theirs = np.load(work / f"{model}-{kind}.npz")
    real = inputs["attention_mask"] == 1
    for name, scores in answer.items():
        scores, wanted = scores.numpy(), theirs[name]
        if kind == "spans":  # ours are out of the question at padding
            scores, wanted = scores[real], wanted[real]
        np.testing.assert_allclose(scores, wanted, atol=1e-5, rtol=0)


@pytest.mark.parametrize("case", CASES)
def test_a_folder_of_transformers_comes_back_byte_for_byte(work, case, tmp_path):
    source = work / f"{case}-theirs"
    weights = hugging_face.read(source)
    hugging_face.write(weights, tmp_path)
    name = "model.safetensors"
    assert (tmp_path / name).read_bytes() == (source / name).read_bytes()
    before, after = (
        json.loads((folder / "config.json").read_text()) for folder in (source, tmp_path)
    )
    key = "activation" if case.startswith("distilbert") else "hidden_act"
    after[key] = before[key]  # of several names for one we write the usual
    after.pop("down_scale_factor", None)
    assert after == before
    assert_same_weights(hugging_face.read(tmp_path), weights)
