"""Our own format: what we trained is read, what is written can be fine-tuned at once."""

import numpy as np
import pytest

from albert_keras.conversion.convert import complete, convert
from albert_keras.formats.hugging_face_config import to_values
from albert_keras.formats.open_model import open_model
from albert_keras.tasks import metrics
from albert_keras.tasks.finetune import finetune
from albert_keras.tasks.finetune_config import FinetuneConfig
from data_pipeline.limits import read_json
from tests.albert_keras.serving.small_exports import make_model, write_run
from tests.albert_keras.tasks.small_tasks import make_task


@pytest.fixture(scope="module")
def google(small_model, tmp_path_factory):
    """Returns a release of google-research/albert."""
    return convert(small_model, tmp_path_factory.mktemp("google") / "model", to="google").path


@pytest.mark.slow
def test_a_fine_tuning_begins_with_what_was_converted_and_is_converted_itself(
    google, tmp_path, tiny_corpus, monkeypatch
):
    result = convert(google, tmp_path / "ours")
    origin = open_model(tmp_path / "ours")
    assert origin.albert_config == open_model(google).albert_config
    assert origin.digest == result.encoder_digest
    assert origin.tokenizer.digest == result.vocabulary["digest"]
    monkeypatch.setattr(metrics, "bootstrap_interval", lambda *_: metrics.Interval(0.25, 0.75))
    words = ("yes", "no")
    lines = [f"{text}\t{words[number % 2]}" for number, text in enumerate(tiny_corpus[:24])]
    for name, some in (("train", lines[:16]), ("dev", lines[16:])):
        (tmp_path / f"{name}.tsv").write_text("\n".join(["text\tlabel", *some]) + "\n")
    settings = FinetuneConfig(
        task={
            "name": "classification",
            "train": str(tmp_path / "train.tsv"),
            "dev": str(tmp_path / "dev.tsv"),
            "text": "text",
            "label": "label",
            "max_seq_length": 16,
        },
        training={"steps": 2, "batch_size": 8, "precision": "float32", "peak_tflops": 1.0},
    )
    tuned = finetune(tmp_path / "ours", tmp_path / "tuned", settings).path
    converted = convert(tuned, tmp_path / "hugging", to="hugging-face")
    assert converted.heads == ("classifier",)
    back = convert(tmp_path / "hugging", tmp_path / "back")
    assert back.heads == ("classifier",)
    assert sorted(back.labels) == ["no", "yes"] and back.labels == converted.labels
    first, second = open_model(tuned).weights(), open_model(tmp_path / "back").weights()
    assert all(map(np.array_equal, first.tensors.values(), second.tensors.values()))


@pytest.mark.parametrize(
    "kind, head", [("tagging", "TokenClassification"), ("choice", "MultipleChoice")]
)
def test_tags_and_choices_have_their_class(kind, head, tiny_tokenizer, tiny_corpus, tmp_path):
    task = make_task(kind)
    model = make_model(task, tiny_tokenizer)
    run = write_run(tmp_path / "run", task, model, tiny_tokenizer, tiny_corpus)
    written = convert(run, tmp_path / "hf", to="hugging-face").path
    assert read_json(written / "config.json")["architectures"] == [f"AlbertFor{head}"]
    assert convert(written, tmp_path / "back").task == task.config.name


@pytest.mark.parametrize(
    "kind, problem",
    [("multi_label", "multi_label_classification"), ("multi_regression", "regression")],
)
def test_several_labels_have_a_problem_type(kind, problem, tiny_tokenizer, tiny_corpus, tmp_path):
    task = make_task(kind)
    model = make_model(task, tiny_tokenizer)
    run = write_run(tmp_path / "run", task, model, tiny_tokenizer, tiny_corpus)
    weights = complete(open_model(run))
    assert weights.labels == ("x", "y", "z")
    values = to_values(weights.config, weights.heads, weights.labels, 3)
    assert values["problem_type"] == problem
    assert values["id2label"] == {"0": "x", "1": "y", "2": "z"}
