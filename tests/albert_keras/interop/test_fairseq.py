"""RoBERTa under the names of fairseq, against the numbers that transformers computed."""

import json

import numpy as np
import pytest

from albert_keras.config import AlbertConfig
from albert_keras.interop import fairseq
from albert_keras.interop.safetensors_file import read_safetensors, write_safetensors
from data_pipeline.errors import InputError
from tests.albert_keras.interop import make_numbers
from tests.albert_keras.interop.random_weights import (
    BERT,
    ROBERTA,
    assert_same_weights,
    pretraining_model,
    pretraining_weights,
    task_weights,
)

#: Names in transformers -> in fairseq, as of the conversion script of transformers.
NAMES = (
    ("roberta.embeddings.word_embeddings", "embed_tokens"),
    ("roberta.embeddings.position_embeddings", "embed_positions"),
    ("roberta.embeddings.LayerNorm", "layernorm_embedding"),
    ("roberta.encoder.layer", "layers"),
    ("attention.self.query", "self_attn.q_proj"),
    ("attention.self.key", "self_attn.k_proj"),
    ("attention.self.value", "self_attn.v_proj"),
    ("attention.output.dense", "self_attn.out_proj"),
    ("attention.output.LayerNorm", "self_attn_layer_norm"),
    ("intermediate.dense", "fc1"),
    ("output.dense", "fc2"),
    ("output.LayerNorm", "final_layer_norm"),
    ("classifier", "classification_heads.mnli"),
)


def fairseq_tensors(tensors):
    """Renames the tensors of transformers; segment types are added to the positions."""
    types = tensors.pop("roberta.embeddings.token_type_embeddings.weight")
    tensors["roberta.embeddings.position_embeddings.weight"] += types
    named = {}
    for name, array in tensors.items():
        encoder = "encoder." if name.startswith("lm_head") else ""
        encoder = "encoder.sentence_encoder." if name.startswith("roberta.") else encoder
        for theirs, new in NAMES:
            name = name.replace(theirs, new)
        named[encoder + name] = array
    return named


def released(tensors):
    """Returns the same tensors under the names of the released files (2019)."""
    old = {}
    for name, array in tensors.items():
        name = name.replace("layernorm_embedding", "emb_layer_norm")
        old["decoder." + name.removeprefix("encoder.") if "encoder." in name else name] = array
    for start in [name.removesuffix("q_proj.weight") for name in old if "q_proj.weight" in name]:
        for end in ("weight", "bias"):
            parts = [old.pop(f"{start}{part}_proj.{end}") for part in "qkv"]
            old[f"{start}in_proj_{end}"] = np.concatenate(parts)
    words = old["decoder.sentence_encoder.embed_tokens.weight"]
    constants = {"decoder.sentence_encoder.version": np.ones(1, np.float32)}
    return old | constants | {"decoder.lm_head.weight": words}


def write_source(folder, name="RobertaForMaskedLM", change=None, heads=2):
    values, tensors, outputs = make_numbers.read(name)
    tensors = fairseq_tensors(tensors)
    write_safetensors(folder / "model.safetensors", change(tensors) if change else tensors)
    (folder / "dict.txt").write_text("".join(f"{n} 0\n" for n in range(11)))
    shape = {
        "sharing": "none",
        "hidden_act": "gelu_erf",
        "embedding_size": 8,
        "pooler": "on_demand",
    }
    shape |= {"num_attention_heads": heads, "position_offset": 2, "layer_norm_epsilon": 1e-5}
    shape |= {"type_vocab_size": 0, "vocab_size": 16, "hidden_size": 8, "num_hidden_layers": 2}
    shape |= {"intermediate_size": 12, "max_position_embeddings": 10}
    (folder / "albert_config.json").write_text(json.dumps(shape))
    return outputs


@pytest.mark.parametrize("change", [None, released], ids=["current", "released"])
def test_outputs_are_those_of_the_same_model_in_transformers(tmp_path, change):
    theirs = write_source(tmp_path, change=change)
    assert fairseq.is_source(tmp_path)
    batch = make_numbers.inputs()
    outputs = pretraining_model(fairseq.read(tmp_path))(
        {
            "input_ids": batch["input_ids"],
            "input_mask": batch["attention_mask"],
            "masked_lm_positions": np.tile(np.arange(10), (3, 1)),
        }
    )
    np.testing.assert_allclose(outputs["masked_lm_logits"], theirs["logits"], atol=1e-5)
    np.testing.assert_allclose(outputs["sequence_output"], theirs["sequence_output"], atol=1e-5)


@pytest.mark.parametrize("kind", ["pretraining", "classification"])
def test_there_and_back_is_the_same_to_the_bit(tmp_path, kind):
    weights = pretraining_weights(**ROBERTA)
    if kind == "classification":
        weights = task_weights(kind, 3, **ROBERTA)
    fairseq.write(weights, tmp_path)
    stored = read_safetensors(tmp_path / "model.safetensors")
    assert ("encoder.lm_head.weight" in stored) == (kind == "pretraining")
    assert len((tmp_path / "dict.txt").read_text().splitlines()) == weights.config.vocab_size - 5
    assert fairseq.is_source(tmp_path)
    assert_same_weights(fairseq.read(tmp_path), weights)


def test_a_head_of_any_name_is_the_classifier(tmp_path):
    write_source(tmp_path, "RobertaForSequenceClassification")
    weights = fairseq.read(tmp_path)
    _, tensors, _ = make_numbers.read("RobertaForSequenceClassification")
    assert weights.heads == ("classifier",)
    np.testing.assert_array_equal(
        weights.tensors["bert/pooler/dense/kernel"], tensors["classifier.dense.weight"].T
    )
    np.testing.assert_array_equal(
        weights.tensors["output_weights"], tensors["classifier.out_proj.weight"]
    )
    start = "classification_heads."
    write_source(
        tmp_path,
        "RobertaForSequenceClassification",
        lambda found: (
            found | {n.replace("mnli", "rte"): a for n, a in found.items() if n.startswith(start)}
        ),
    )
    with pytest.raises(InputError, match="at most one classification head. .*: mnli, rte"):
        fairseq.read(tmp_path)


def test_the_shape_is_that_of_the_tensors_of_a_published_model(tmp_path, caplog):
    sizes = {"hidden_size": 64, "embedding_size": 64, "num_attention_heads": 1}
    weights = pretraining_weights(**ROBERTA | sizes)
    fairseq.write(weights, tmp_path)
    (tmp_path / "albert_config.json").unlink()
    found = fairseq.read(tmp_path)
    assert "assumed to have 1 attention heads" in caplog.text
    dropout = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
    assert_same_weights(found, weights._replace(config=weights.config.replace(**dropout)))
    write_source(tmp_path)
    (tmp_path / "albert_config.json").unlink()
    with pytest.raises(InputError, match="attention heads .* is unknown.* --config"):
        fairseq.read(tmp_path)
    config = tmp_path / "shape.json"
    AlbertConfig(**ROBERTA | {"vocab_size": 16, "hidden_size": 8, "num_attention_heads": 2}).save(
        config
    )
    with pytest.raises(InputError, match="expected shape"):
        fairseq.read(tmp_path, config=config)


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda t: t | {"encoder.lm_head.weight": np.ones((16, 8), np.float32)}, "must equal"),
        (lambda t: t | {"decoder.lm_head.bias": t["encoder.lm_head.bias"]}, "twice"),
        (lambda t: t | {"encoder.sentence_encoder.layer_norm.weight": np.ones(8, "f4")}, "unexp"),
        (lambda t: {n: a for n, a in t.items() if "fc1.bias" not in n}, "fc1.bias: missing"),
    ],
)
def test_another_model_is_refused(tmp_path, change, message):
    write_source(tmp_path, change=change)
    with pytest.raises(InputError, match=message):
        fairseq.read(tmp_path)


@pytest.mark.parametrize("changes", [BERT, ROBERTA | {"hidden_act": "gelu"}])
def test_what_fairseq_cannot_express_is_refused(tmp_path, changes):
    with pytest.raises(InputError, match="A RoBERTa of fairseq cannot express this model"):
        fairseq.write(pretraining_weights(**changes), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_pickle_is_read_only_if_it_is_trusted(tmp_path):
    (tmp_path / "dict.txt").write_text("")
    (tmp_path / "model.pt").write_bytes(b"anything")
    assert fairseq.is_source(tmp_path)
    with pytest.raises(InputError, match="--trust-pickle"):
        fairseq.read(tmp_path)
