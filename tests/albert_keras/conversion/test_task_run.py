"""A foreign model with the head of a task becomes a run that answers with its numbers."""

import functools
import json

import pytest

from albert_keras.conversion.convert import convert
from albert_keras.formats import hugging_face
from albert_keras.formats.open_weights import open_weights
from albert_keras.formats.vocabulary_writing import files_for, write_files
from albert_keras.serving.export.source import open_source
from albert_keras.tasks.finetuned import open_finetuned, open_run, task_of
from albert_keras.tasks.predict import answering
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from tests.albert_keras.checkpoint_tensors import assert_same
from tests.albert_keras.formats import random_weights
from tests.albert_keras.formats.random_weights import task_weights
from tests.albert_keras.loaded_weights import values_of

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
def hugging_face_folder(tiny_tokenizer, tmp_path_factory):
    """Returns a function of a case that writes a folder of Hugging Face; its path and weights."""

    def write(name, with_vocabulary=True):
        kind, outputs, labels, keys, _ = CASES[name]
        weights = task_weights(kind, outputs, labels, vocab_size=tiny_tokenizer.vocab_size, **SIZES)
        files = files_for(tiny_tokenizer, "hugging-face", 160) if with_vocabulary else {}
        weights = random_weights.with_shape(weights, foreign_keys=keys)
        folder = tmp_path_factory.mktemp("hugging-face") / "model"
        folder.mkdir()
        hugging_face.write(weights, folder)
        write_files(folder, files)
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


def answers_of(path, fields):
    """Returns the answers of a run to an input."""
    task, model = task_of(open_run(path)), open_finetuned(path)
    return answering(task, model)(task.typed_examples([fields]))


@pytest.mark.parametrize("name", ["classes", "scores", "tags", "spans", "choice"])
def test_the_run_answers_with_every_number_of_the_foreign_model(converted, name):
    result, weights = converted(name)
    assert result.task == CASES[name][-1]
    assert_same(values_of(open_finetuned(result.path)), weights.arrays)
    fields = {
        "spans": {"question": "the ferry", "context": TEXT},
        "choice": {"question": "the ferry", "context": TEXT, "options": ["left", "sunrise"]},
    }.get(name, TEXT)
    assert len(answers_of(result.path, fields)) == 1
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


def test_a_classifier_of_pairs_is_named_by_the_user(converted):
    result, _ = converted("numbered", pair=True)
    [answer] = answers_of(result.path, {"text": TEXT, "pair": "the ferry"})
    assert result.task == "pair" and set(answer.probabilities) == {"LABEL_0", "LABEL_1"}
    with pytest.raises(InputError, match="`pair` requires a model that sorts .* heads spans"):
        converted("spans", pair=True)


def test_without_a_vocabulary_the_folder_is_for_fine_tuning_only(
    hugging_face_folder, tmp_path, caplog
):
    source, _ = hugging_face_folder("classes", with_vocabulary=False)
    result = convert(source, tmp_path / "ours")
    assert result.task is None and (tmp_path / "ours" / "model.ckpt.index").is_file()
    assert "pass one as `tokenizer`" in caplog.text
