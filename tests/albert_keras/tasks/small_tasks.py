"""A small task of each kind, and labelled examples for it."""

import functools
import json
import random

import tensorflow as tf

import albert_keras
from albert_keras.config import AlbertConfig
from albert_keras.models.text_rows import TextRows
from albert_keras.tasks.examples import (
    Answer,
    ChoiceExample,
    QuestionExample,
    TaggedExample,
    TextExample,
)
from albert_keras.tasks.kinds import build_task, task_class
from albert_keras.tasks.task_config import TaskConfig
from albert_keras.tasks.trainer import TaskTrainer

#: Letters, marks, punctuation, digits and emoji of several scripts.
MIXED_TEXT = "Anna, aged 3.5 (well-known)… 王明住在北京。 हिन्दी، عَرَبِيّ؟ 👩‍🔬❤️ $5\u00a0x\x1fy"
#: Settings of a small task of each kind.
SETTINGS = {
    "classification": {"name": "pair", "text": "a", "pair": "b", "labels": ("no", "yes", "maybe")},
    "regression": {"name": "regression", "text": "a"},
    "choice": {"name": "race", "max_qa_length": 12},
    "tagging": {"name": "tagging", "labels": ("B-X", "I-X", "O")},
    "spans": {"name": "squad1", "doc_stride": 8, "max_query_length": 6},
    "spans_or_none": {"name": "squad2", "doc_stride": 8, "max_query_length": 6},
    "multi_label": {"name": "classification", "text": "a", "label": ("x", "y", "z")},
    "multi_regression": {"name": "regression", "text": "a", "label": ("x", "y", "z")},
    "similarity": {"name": "similarity", "text": "a", "pair": "b", "label": "c"},
}


_SMALLEST = {
    "hidden_size": 2,
    "num_hidden_layers": 1,
    "num_attention_heads": 1,
    "vocab_size": 9,
    "embedding_size": 2,
    "intermediate_size": 2,
}


def build_model(kind, config, num_outputs, **settings):
    """Builds the model of a kind, by its name."""
    if kind in ("classification", "multi_label", "multi_regression", "tagging"):
        settings = {"num_labels": num_outputs} | settings
    elif kind == "spans_or_none":
        settings = {"can_be_none": True} | settings
    return getattr(albert_keras, task_class(kind).model_name)(config, **{"seed": 0} | settings)


@functools.cache
def _smallest_model(kind):
    return build_model(kind, AlbertConfig(**_SMALLEST), 3)


def task_sums(kind, outputs, features):
    """Returns the Sums of the model of a kind."""
    return TaskTrainer(_smallest_model(kind)).objectives(features)["answer"].sums(outputs)


def task_counts(kind, features):
    """Returns the sum of the weights of the losses of a kind."""
    return tf.reduce_sum(_smallest_model(kind).weights_of(features))


def rows_for(task, examples, tokenizer, training=False):
    """Returns the TextRows of examples of a task."""
    targets = task.targets(examples) if training else None
    return TextRows(task.build_preprocessor(tokenizer), task.columns(examples), targets)


def make_task(kind):
    """Returns the small task of a kind, S = 40."""
    return build_task(TaskConfig(max_seq_length=40, **SETTINGS[kind]))


def make_examples(corpus, kind, count=21):
    """Makes so many labelled examples of a kind, of uneven lengths: list."""
    draws = [random.Random(f"{kind} {number}") for number in range(count)]
    return [_example(kind, str(number), rng, corpus) for number, rng in enumerate(draws)]


def write_squad(path, *examples):
    """Writes questions to a file of SQuAD, each with its passage; returns the path."""
    paragraphs = []
    for example in examples:
        answers = [{"text": text, "answer_start": start} for text, start in example.answers]
        question = example._asdict() | {"answers": answers}
        paragraphs.append({"context": question.pop("context"), "qas": [question]})
    path.write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    return path


def _example(kind, id, rng, corpus):
    first, second = (rng.choice(corpus).split() for _ in range(2))
    first, second = first[: rng.randint(1, 15)], second[: rng.randint(1, 3)]
    text = " ".join(first)
    if kind == "classification":
        return TextExample(id, text, " ".join(second), rng.choice(("no", "yes", "maybe")))
    if kind == "regression":
        return TextExample(id, text, None, round(rng.gauss(0, 1), 3))
    if kind == "multi_label":
        return TextExample(id, text, None, tuple(name for name in "xyz" if rng.random() < 0.4))
    if kind == "multi_regression":
        return TextExample(id, text, None, tuple(round(rng.gauss(0, 1), 3) for _ in "xyz"))
    if kind == "similarity":
        return TextExample(id, text, " ".join(second), round(rng.uniform(0, 5), 3))
    if kind == "choice":
        options = tuple(rng.choice(corpus).split()[0] for _ in range(3))
        return ChoiceExample(id, text, "Why _ ?", options, rng.randrange(3))
    if kind == "tagging":
        return TaggedExample(id, tuple(first), tuple(rng.choice(("B-X", "O")) for _ in first))
    is_impossible = kind == "spans_or_none" and rng.random() < 0.3
    answers = () if is_impossible else (Answer(first[-1], len(text) - len(first[-1])),)
    return QuestionExample(id, "What now?", text, answers, is_impossible)
