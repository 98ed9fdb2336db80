"""A kind of task that the package does not know: one class of model, and one reader."""

import csv
import json
from typing import NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

import albert_keras
from albert_keras import (
    AlbertForTexts,
    AlbertPreprocessor,
    FinetuneConfig,
    evaluate_task,
    export,
    finetune,
)
from albert_keras.models.task_heads import LinearHead
from albert_keras.tasks import metrics
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.kinds import register_kind
from albert_keras.tasks.task import Task
from tests.albert_keras.serving.local.running import ask, running
from tests.albert_keras.tasks.conftest import SHAPE

# === The kind, in at most 60 lines


class ShareAnswer(NamedTuple):
    id: str
    share: float  # from 0 to 1
    dropped_tokens: int = 0


@keras.saving.register_keras_serializable("tests")
class AlbertForShares(AlbertForTexts):
    """Estimates a share of a text, such as that of its humour, from 0 to 1."""

    preprocessor_class = AlbertPreprocessor
    signature = "share", {"text": "text"}
    usual_loss, has_accuracy = "binary_crossentropy", False

    def __init__(self, config, **kwargs):
        super().__init__(config, **kwargs)
        self.head = LinearHead(config, 1, self.head_dropout, **self._of_head)

    def _outputs(self, inputs, training, dropout_seed):
        pooled = self._pooled(inputs, training, dropout_seed)
        return {"logits": self.head(pooled, dropout_seed, training=training)[:, 0]}

    def predictions(self, outputs):
        return tf.sigmoid(outputs["logits"])

    def compute_losses(self, outputs, features):
        labels = tf.cast(features["labels"], tf.float32)
        losses = tf.nn.sigmoid_cross_entropy_with_logits(labels, outputs["logits"])
        return losses, tf.zeros_like(losses)

    @classmethod
    def targets_of(cls, labels, columns, names=(), are_shares=True):
        return np.asarray(labels, np.float32)

    def read_out(self, outputs, origin):
        return {"share": self.predictions(outputs), **origin}

    @classmethod
    def answers_of(cls, arrays, columns):
        rows = zip(columns["id"], arrays["share"], arrays["dropped_tokens"], strict=True)
        return [ShareAnswer(id, float(share), int(count)) for id, share, count in rows]


@register_kind("share")
class ShareTask(Task):
    """Reads tables with the columns `text` and `share`."""

    model_class, metric, is_official = AlbertForShares, "spearman", False

    def read_file(self, path, labelled):
        with open(path, encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        return [
            TextExample(str(at), row["text"], label=float(row["share"]) if labelled else None)
            for at, row in enumerate(rows)
        ]

    def scores(self, examples, answers):
        truth, found = [one.label for one in examples], [one.share for one in answers]
        return metrics.scores([self.metric], np.array(truth), np.array(found))


# === What it can do


@pytest.fixture(scope="module")
def tuned(tiny_tokenizer, tiny_corpus, tmp_path_factory):
    """Returns the folder of a fine-tuning of the kind, and of its files."""
    folder = tmp_path_factory.mktemp("shares")
    for name, texts in (("train", tiny_corpus[:120]), ("dev", tiny_corpus[120:160])):
        with open(folder / f"{name}.csv", "w", encoding="utf-8", newline="") as file:
            rows = [(text, min(1.0, text.count("e") / 10)) for text in texts]
            csv.writer(file).writerows([("text", "share"), *rows])
    files = {name: str(folder / f"{name}.csv") for name in ("train", "dev")}
    finetune(
        "random",
        folder / "run",
        albert_config=SHAPE,
        tokenizer=tiny_tokenizer,
        config=FinetuneConfig(
            task={"name": "share", "max_seq_length": 24, **files},
            training={"steps": 40, "batch_size": 16, "precision": "float32"},
            optimizer={"name": "adamw", "lr": 1e-3, "warmup_steps": 4},
        ),
    )
    return folder


@pytest.mark.slow
def test_a_new_kind_is_trained_scored_exported_and_served(tuned):
    texts = ["The old ferry left the harbour.", "", "[MASK] \0 nothing"]
    model = albert_keras.open_finetuned(tuned / "run")
    assert type(model) is AlbertForShares
    expected = [one.share for one in model.answer(texts)]
    assert model.predict(texts, verbose=0).tolist() == pytest.approx(expected, abs=1e-6)
    scores = evaluate_task(tuned / "run", data=tuned / "dev.csv").scores
    assert scores["spearman"] > 0.2
    export(tuned / "run", tuned / "export")
    served = tf.saved_model.load(str(tuned / "export" / "1"))
    found = served.signatures["share"](text=tf.constant(texts))["share"]
    assert found.numpy().tolist() == pytest.approx(expected, abs=1e-6)
    with running([tuned / "export"]) as server:
        body = json.dumps(
            {"signature_name": "share", "instances": [{"text": one} for one in texts]}
        )
        headers = {"Content-Type": "application/json"}
        answer = ask(server, "POST", "/v1/models/export:predict", body, headers)
    rows = json.loads(answer.body)["predictions"]
    assert [row["share"] for row in rows] == pytest.approx(expected, abs=1e-6)


def test_a_new_kind_is_a_keras_model(tiny_tokenizer, tmp_path):
    model = AlbertForShares(SHAPE, preprocessor=AlbertPreprocessor(tiny_tokenizer, 24))
    model.fit(["a dull film", "a funny film"], [0.1, 0.9], epochs=1, verbose=0)
    model.save(tmp_path / "shares.keras")
    loaded = keras.models.load_model(tmp_path / "shares.keras")
    assert loaded.answer(["a film"]) == model.answer(["a film"])
