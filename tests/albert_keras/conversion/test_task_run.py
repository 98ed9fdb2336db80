"""A foreign model with the head of a task becomes a run that answers with the same logits."""

import functools
import json

import numpy as np
import pytest

from albert_keras.conversion.convert import convert
from albert_keras.conversion.task_run import task_of_head
from albert_keras.formats import hugging_face
from albert_keras.formats.open_weights import open_weights
from albert_keras.formats.vocabulary import vocabulary_of
from albert_keras.formats.vocabulary_writing import files_for
from albert_keras.models.row_predictor import RowPredictor
from albert_keras.models.text_rows import TextRows
from albert_keras.serving.export.source import open_source
from albert_keras.tasks.finetuned import open_finetuned, open_run, task_of
from albert_keras.tasks.predict import answering
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from tests.albert_keras import numpy_albert
from tests.albert_keras.formats import random_weights
from tests.albert_keras.formats.random_weights import task_weights

SIZES = {
    "embedding_size": 16,
    "hidden_size": 32,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 160,
}
TEXT = "the old ferry left before sunrise (slowly)."
#: Name -> kind of the model, its outputs, its labels, keys of config.json, and the task.
CASES = {
    "classes": ("classification", 3, ("bad", "fine", "good"), {}, "classification"),
    "numbered": ("classification", 2, (), {}, "classification"),
    "score": ("regression", 1, (), {"problem_type": "regression"}, "regression"),
    "several labels": (
        "classification",
        2,
        ("a", "b"),
        {"problem_type": "multi_label_classification"},
        "classification",
    ),
    "scores": ("classification", 2, ("a", "b"), {"problem_type": "regression"}, "regression"),
    "tags": (
        "tagging",
        3,
        ("O", "B-X", "I-X"),
        {"architectures": ["AlbertForTokenClassification"]},
        "tagging",
    ),
    "spans": ("spans", 0, (), {}, "squad1"),
    "choice": ("choice", 1, (), {"architectures": ["AlbertForMultipleChoice"]}, "race"),
}


@pytest.fixture(scope="module")
def hugging_face_folder(tokenizer_files, tiny_tokenizer, tmp_path_factory):
    """Returns a function of a case that writes a folder of Hugging Face; its path and weights."""
    vocabulary = vocabulary_of(tokenizer_files, "a test")

    def write(name, with_vocabulary=True):
        kind, outputs, labels, keys, _ = CASES[name]
        weights = task_weights(kind, outputs, labels, vocab_size=tiny_tokenizer.vocab_size, **SIZES)
        files = files_for(vocabulary, "hugging-face", 160) if with_vocabulary else {}
        weights = random_weights.with_shape(weights, foreign_keys=keys)
        folder = tmp_path_factory.mktemp("hugging-face") / "model"
        folder.mkdir()
        hugging_face.write(weights, folder, files)
        return folder, weights

    return write


@pytest.fixture(scope="module")
def converted(hugging_face_folder, tmp_path_factory):
    """Returns a function of a case that converts a folder of Hugging Face, each once."""

    @functools.cache
    def convert_case(name, **options):
        source, weights = hugging_face_folder(name)
        target = tmp_path_factory.mktemp("converted") / "model"
        return convert(source, target, **options), weights

    return convert_case


def logits_in_numpy(weights, batch):
    """Returns the logits of a head, computed from the tensors of the source in float64."""
    length = batch["input_ids"].shape[-1]
    rows = [batch[key].reshape(-1, length) for key in ("input_ids", "input_mask", "segment_ids")]
    arrays = weights.arrays
    sequence, pooled, _ = numpy_albert.encode(arrays, weights.albert_config.to_dict(), *rows)
    name = "cls/squad/output_" if "spans" in weights.heads else "output_"
    kernel, bias = arrays[f"{name}weights"], arrays[f"{name}bias"]
    return lambda per_position: (sequence if per_position else pooled) @ kernel.T + bias


def asked(path, fields):
    """Returns the answers of a run to an input, its rows, and the outputs for them."""
    task, model = task_of(open_run(path)), open_finetuned(path)
    examples = task.typed_examples([fields])
    rows = TextRows(model.preprocessor, task.columns(examples))
    return answering(task, model)(examples), rows, RowPredictor.of_model(model).predict(rows)


@pytest.mark.parametrize("name", ["classes", "scores", "tags", "spans", "choice"])
def test_the_logits_are_those_of_the_foreign_head(converted, name):
    result, weights = converted(name)
    assert result.task == CASES[name][-1]
    fields = {
        "spans": {"question": "the ferry", "context": TEXT},
        "choice": {"question": "the ferry", "context": TEXT, "options": ["left", "sunrise"]},
    }.get(name, TEXT)
    answers, features, found = asked(result.path, fields)
    length = int(features.lengths[0])
    of = logits_in_numpy(weights, features.batch(np.arange(1), length))
    if name == "spans":
        pairs = zip(("start_logits", "end_logits"), np.moveaxis(of(True), -1, 0), strict=True)
        context = np.flatnonzero(features.batch(np.arange(1), length)["p_mask"][0] == 0)
        for key, expected in pairs:
            np.testing.assert_allclose(
                found[key][:, context], expected[:, context], rtol=0, atol=1e-5
            )
    elif name == "tags":
        np.testing.assert_allclose(found["logits"][:, :length], of(True), rtol=0, atol=1e-5)
    else:
        expected = of(False).reshape(1, -1)
        np.testing.assert_allclose(found["logits"], expected, rtol=0, atol=1e-5)
    assert len(answers) == 1
    if name in ("classes", "tags", "spans"):
        source = open_source(result.path)
        assert source.kind == "finetuning" and source.task.config.name == CASES[name][-1]
        assert source.max_seq_length in (128, 160) and json.dumps(source.describe())


def test_labels_columns_and_length_are_those_of_the_source(converted):
    for name in ("score", "several labels"):
        result, _ = converted(name)
        task = TaskConfig(**open_weights(result.path).task)
        assert task.name == result.task == CASES[name][-1]
        assert task.label_separator == ("|" if name == "several labels" else None)
    result, _ = converted("classes")
    task = TaskConfig(**open_weights(result.path).task)
    assert task.labels == ("bad", "fine", "good") and (task.text, task.label) == ("text", "label")
    assert task.max_seq_length == 128 and task.train is None
    assert open_weights(converted("numbered")[0].path).task["labels"] == ["LABEL_0", "LABEL_1"]


def test_a_converted_tagger_splits_as_its_vocabulary_shows(tiny_tokenizer):
    keys = {"architectures": ["BertForTokenClassification"]}
    weights = task_weights("tagging", 3, ("O", "B-X", "I-X"), vocab_size=307, **SIZES)
    weights = random_weights.with_shape(weights, foreign_keys=keys)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"word{n}" for n in range(60))]
    for count, rule in ((5, "punctuation"), (40, "characters")):
        words = "\n".join([*pieces, *map(chr, range(0x4E00, 0x4E00 + count))]).encode()
        tokenizer = vocabulary_of({"vocab.txt": words}, "a test").tokenizer
        assert task_of_head(weights, tokenizer)[0].word_split == rule
    assert task_of_head(weights, tiny_tokenizer)[0].word_split == "punctuation"


def test_a_classifier_of_pairs_is_named_by_the_user(converted):
    result, _ = converted("numbered", pair=True)
    [answer], _, _ = asked(result.path, {"text": TEXT, "pair": "the ferry"})
    assert result.task == "pair" and set(answer.probabilities) == {"LABEL_0", "LABEL_1"}
    with pytest.raises(InputError, match="`pair` requires a model that sorts .* heads spans"):
        converted("spans", pair=True)


def test_without_a_vocabulary_the_folder_is_for_fine_tuning_only(hugging_face_folder, tmp_path):
    source, _ = hugging_face_folder("classes", with_vocabulary=False)
    result = convert(source, tmp_path / "ours")
    assert result.task is None and (tmp_path / "ours" / "model.ckpt.index").is_file()
    assert any("pass one as `tokenizer`" in note for note in result.notes)
