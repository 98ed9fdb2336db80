"""Small fine-tuned runs and exports of each kind of task, made without any training."""

import json

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.models.text_rows import TextRows
from albert_keras.runs.run import Run
from albert_keras.runs.tensors import weight_names
from albert_keras.serving.export.source import ExportSource
from albert_keras.tasks.example_source import ExampleSource
from albert_keras.tasks.finetune_config import FinetuneConfig
from tests.albert_keras.tasks.conftest import SHAPE
from tests.albert_keras.tasks.small_tasks import make_examples

#: Of squad2; where there is none, 0 is taken.
NULL_THRESHOLD = -0.6


def make_model(task, tokenizer, **shape_changes):
    """Returns a small model of a task that tells inputs apart."""
    shape = SHAPE.replace(vocab_size=tokenizer.vocab_size, initializer_range=0.5, **shape_changes)
    model = task.build_model(shape, tokenizer, tuned_of(task), seed=0)
    draw = np.random.default_rng(0)
    for weight in model.head.weights:
        weight.assign(draw.normal(0, 0.5, weight.shape))
    return model


def tuned_of(task):
    """Returns what was tuned with a small task, as `Task.fit_thresholds`."""
    if task.kind == "multi_label":
        return dict(zip(task.labels, (0.3, 0.5, 0.8), strict=True))
    return {"null_threshold": NULL_THRESHOLD} if task.kind == "spans_or_none" else {}


def assert_alike(found, expected):
    """Compares answers: numbers to 5 digits, all else exactly."""
    if isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-5)
    elif isinstance(expected, dict):
        assert list(found) == list(expected)
        assert_alike(list(found.values()), list(expected.values()))
    elif isinstance(expected, list | tuple):
        assert type(found) is type(expected) and len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_alike(one, other)
    else:
        assert found == expected


def write_run(folder, task, model, tokenizer, corpus):
    """Writes a model as a fine-tuned run that it is the best checkpoint of."""
    config = FinetuneConfig(
        task=task.config,
        training={"steps": 1, "batch_size": 4, "precision": "float32"},
    )
    examples = make_examples(corpus, task.kind, 4)
    columns, targets = task.columns(examples), task.targets(examples)
    rows = TextRows(task.build_preprocessor(tokenizer), columns, targets)
    source = ExampleSource(rows, tokenizer, config.training, {"fingerprint": "0"})
    run = Run.prepare(folder, config, model.config, source)
    run.write()
    run.checkpoints.save(1, weight_names(model), score=0.5)
    model.thresholds = tuned_of(task)
    run.save_model(model)
    return folder


#: The signature that answers an example of a kind, if it is not `serving_default`.
ANSWERING = {
    "spans": "question_answering",
    "spans_or_none": "question_answering",
    "choice": "multiple_choice",
    "tagging": "tags",
    "similarity": "text_pair",
}


def write_export(folder, task, model, tokenizer, signatures=None):
    """Writes a model as a version of an export, with what `export.json` has for readers.

    All signatures take seconds, so there are some of them only; by default the one that answers.
    """
    if signatures is None:
        usual = "text_pair" if task.takes_pair else "serving_default"
        signatures = [ANSWERING.get(task.kind, usual)]
    record = {"kind": "finetuning", "tokenizer_digest": tokenizer.digest}
    source = ExportSource(record, None, model, tokenizer, task.max_seq_length, task)
    module = source.string_model("float32")
    part = tf.Module()
    part.used = module.weights, module.tokenizer
    chosen = {name: module.functions[name] for name in signatures}
    tf.saved_model.save(part, str(folder), signatures=chosen)
    tokenizer.save(folder / "tokenizer")
    record = source.describe()
    (folder / "export.json").write_text(json.dumps(record))
    return folder
