"""Models of each family against numbers that transformers computed."""

import json

import numpy as np
import pytest

from albert_keras.formats import hugging_face
from albert_keras.formats.hugging_face import read_safetensors, write_safetensors
from albert_keras.runs.tensors import weight_names
from data_pipeline.errors import InputError
from tests.albert_keras.formats import make_numbers
from tests.albert_keras.formats.random_weights import (
    BERT,
    ROBERTA,
    assert_same_weights,
    pretraining_model,
    pretraining_weights,
)
from tests.albert_keras.tasks.small_tasks import build_model

#: Class of transformers with several heads -> names of its outputs -> ours.
LOGITS = {
    "AlbertForPreTraining": {
        "prediction_logits": "masked_lm_logits",
        "sop_logits": "sentence_order_logits",
    },
    "BertForPreTraining": {
        "prediction_logits": "masked_lm_logits",
        "seq_relationship_logits": "sentence_order_logits",
    },
}
TASKS = {
    "SequenceClassification": ("classification", 3),
    "TokenClassification": ("tagging", 3),
    "QuestionAnswering": ("spans", 0),
}


def write_theirs(name, folder):
    """Writes the model of a class that transformers made; its configuration and outputs."""
    values, tensors, outputs = make_numbers.read(name)
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(values))
    return values, outputs


def ours(weights, name, batch):
    """Returns the outputs of our model for a class of theirs."""
    inputs = {"input_ids": batch["input_ids"], "input_mask": batch["attention_mask"]}
    kind, number = TASKS.get(name.partition("For")[2], (None, 0))
    if kind is None:
        positions = np.tile(np.arange(10), (3, 1))
        outputs = pretraining_model(weights)(inputs | {"masked_lm_positions": positions})
        names = LOGITS.get(name, {"logits": "masked_lm_logits"})
        names = names | {"sequence_output": "sequence_output"}
        return {theirs: outputs[ours] for theirs, ours in names.items()}
    model = build_model(kind, weights.albert_config, number, dtype="float32")
    model.set_weights([weights.arrays[name] for name in weight_names(model)])
    return model.outputs_of(inputs) | {"sequence_output": model.encoder(inputs)["sequence_output"]}


@pytest.mark.parametrize("name", make_numbers.CASES)
def test_outputs_are_the_numbers_of_transformers_and_the_folder_comes_back(tmp_path, name):
    values, theirs = write_theirs(name, tmp_path)
    weights = hugging_face.read(tmp_path)
    batch = make_numbers.inputs()
    real = batch["attention_mask"] == 1
    found = ours(weights, name, batch)
    assert theirs.keys() == found.keys()
    for output, expected in theirs.items():
        got = found[output].numpy()
        if output in ("start_logits", "end_logits"):  # ours exclude padding
            got, expected = got[real], expected[real]
        np.testing.assert_allclose(got, expected, atol=1e-5, rtol=0, err_msg=output)
    assert weights.albert_config.foreign_keys.keys() <= values.keys()
    back = tmp_path / "back"
    back.mkdir()
    hugging_face.write(weights, back)
    before, after = (read_safetensors(folder / "model.safetensors") for folder in (tmp_path, back))
    assert after.keys() == before.keys()
    for tensor, array in before.items():
        np.testing.assert_array_equal(after[tensor], array, err_msg=tensor)
    written = json.loads((back / "config.json").read_text())
    assert written == written | values
    assert_same_weights(hugging_face.read(back), weights)


@pytest.mark.parametrize("name", ["classifier.dense", "pre_classifier"])
def test_a_classifier_without_its_dense_layer_is_refused(tmp_path, name):
    case = "Roberta" if name == "classifier.dense" else "DistilBert"
    write_theirs(f"{case}ForSequenceClassification", tmp_path)
    tensors = read_safetensors(tmp_path / "model.safetensors")
    kept = {tensor: array for tensor, array in tensors.items() if not tensor.startswith(name)}
    write_safetensors(tmp_path / "model.safetensors", kept)
    with pytest.raises(InputError, match=f"{name}.weight: missing"):
        hugging_face.read(tmp_path)


def test_a_pooler_beside_that_of_the_classifier_is_omitted(tmp_path, caplog):
    write_theirs("RobertaForSequenceClassification", tmp_path)
    weights = hugging_face.read(tmp_path)
    tensors = read_safetensors(tmp_path / "model.safetensors")
    pooler = {"roberta.pooler.dense.weight": np.ones((8, 8), np.float32)}
    pooler["roberta.pooler.dense.bias"] = np.ones(8, np.float32)
    write_safetensors(tmp_path / "model.safetensors", tensors | pooler)
    assert_same_weights(hugging_face.read(tmp_path), weights)
    assert "a pooler that its class does not use" in caplog.text


def test_positions_may_start_after_any_id_of_padding():
    weights = pretraining_weights(**ROBERTA)
    assert weights.with_padding_at(1) is weights
    batch = make_numbers.inputs()
    inputs = {"input_ids": batch["input_ids"][:, :9], "input_mask": batch["attention_mask"][:, :9]}
    inputs["masked_lm_positions"] = np.tile(np.arange(9), (3, 1))
    wanted = pretraining_model(weights)(inputs)["masked_lm_logits"]
    for pad_id in (0, 4):
        moved = weights.with_padding_at(pad_id)
        assert moved.albert_config.position_offset == pad_id + 1
        found = pretraining_model(moved)(inputs)["masked_lm_logits"]
        np.testing.assert_array_equal(found, wanted)
    plain = pretraining_weights(**BERT)
    assert plain.with_padding_at(3) is plain
