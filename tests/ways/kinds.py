"""A tiny model of each kind, trained for some steps, and where its inputs have an odd text."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from albert_keras import AlbertConfig, FinetuneConfig
from tests.albert_keras.tasks.conftest import SHAPE

_TEXTS = (
    "The old ferry left the harbour before sunrise.",
    "Seven geese crossed the frozen lake in a single line.",
    "A letter from Lisbon arrived three weeks too late.",
    "Nobody could explain the blue light.",
    "Rain had washed the chalk marks from the wall.",
    "The farmer sold 12 sheep, 40 hens and one goat.",
    "Wild strawberries grew between the tracks.",
    "The judge listened politely to both sides.",
)
_PAIRS = _TEXTS[1:] + _TEXTS[:1]
_WORDS = [text.rstrip(".").split() for text in _TEXTS]
_TAGS = [["B-X" if at % 3 else "O" for at, _ in enumerate(words)] for words in _WORDS]
_NUMBERS = [1.0, 2.5, 0.0, 4.0, 3.5, 2.0, 1.5, 3.0]
_QUESTION, _OPTIONS = "What left the harbour?", ["The ferry", "A goat", "blue light", "One hen"]


class Kind(NamedTuple):
    """A kind of model."""

    task: Mapping[str, Any]  # a TaskConfig
    columns: Mapping[str, list]  # of the training examples
    labels: list
    places: tuple[str, ...]  # the inputs that may be odd
    signature: str  # of an export, which answers
    #: Names of the inputs of the signature that differ.
    inputs_of_signature: Mapping[str, str] = {}

    def odd_inputs(self, text: str | bytes) -> dict[str, dict[str, Any]]:
        """Returns an input for each place, in which a text stands beside plain ones."""
        if "words" in self.places:
            words = text.split() if isinstance(text, str) else []
            return {"words": {"words": words}} if words else {}
        plain = {name: values[0] for name, values in self.columns.items() if name != "words"}
        return {
            place: plain | {place: [text, *_OPTIONS[1:]] if place == "options" else text}
            for place in self.places
        }


_FIRST_AND_SECOND = {"text": "first", "pair": "second"}
_QUESTIONS = {"context": [*_TEXTS], "question": [_QUESTION] * len(_TEXTS)}
KINDS = {
    "classes": Kind(
        {"name": "classification", "text": "text", "label": "label"},
        {"text": [*_TEXTS]},
        ["sea", "land"] * 4,
        ("text",),
        "serving_default",
    ),
    "labels": Kind(
        {"name": "classification", "text": "text", "label": "label", "label_separator": "|"}
        | {"threshold": 0.5},  # not one that is fitted to odd texts
        {"text": [*_TEXTS]},
        [["sea"], ["land"], ["sea", "old"], [], ["land"], ["old"], ["land", "old"], ["sea"]],
        ("text",),
        "serving_default",
    ),
    "numbers": Kind(
        {"name": "regression", "text": "text", "label": "label"},
        {"text": [*_TEXTS]},
        _NUMBERS,
        ("text",),
        "serving_default",
    ),
    "pair": Kind(
        {"name": "pair", "text": "text", "pair": "pair", "label": "label"}
        | {"pair_encoding": "joint"},
        {"text": [*_TEXTS], "pair": [*_PAIRS]},
        ["yes", "no"] * 4,
        ("text", "pair"),
        "text_pair",
        _FIRST_AND_SECOND,
    ),
    "separate pair": Kind(
        {"name": "pair", "text": "text", "pair": "pair", "label": "label"}
        | {"pair_encoding": "separate"},
        {"text": [*_TEXTS], "pair": [*_PAIRS]},
        ["yes", "no"] * 4,
        ("text", "pair"),
        "text_pair",
        _FIRST_AND_SECOND,
    ),
    "similarity": Kind(
        {"name": "similarity", "text": "text", "pair": "pair", "label": "label"},
        {"text": [*_TEXTS], "pair": [*_PAIRS]},
        _NUMBERS,
        ("text", "pair"),
        "text_pair",
        _FIRST_AND_SECOND,
    ),
    "tags": Kind(
        {"name": "tagging"},
        {"words": _WORDS},
        _TAGS,
        ("text",),
        "tags",
    ),
    "words": Kind(
        {"name": "tagging"},
        {"words": _WORDS},
        _TAGS,
        ("words",),
        "tags",
        {"words": "text"},
    ),
    "spans": Kind(
        {"name": "squad2", "max_query_length": 8, "doc_stride": 8, "n_best": 3},
        _QUESTIONS,
        [text.split()[1] if at % 3 else None for at, text in enumerate(_TEXTS)],
        ("context", "question"),
        "question_answering",
    ),
    "options": Kind(
        {"name": "race", "max_qa_length": 10},
        _QUESTIONS | {"options": [_OPTIONS] * len(_TEXTS)},
        [0, 1, 2, 1, 0, 2, 1, 0],
        ("context", "question", "options"),
        "multiple_choice",
    ),
}


def config_of(kind: Kind) -> FinetuneConfig:
    """Returns the settings of a training of some steps, whose answers are of several kinds."""
    return FinetuneConfig(
        task={"max_seq_length": 32} | dict(kind.task),
        training={"steps": 30, "batch_size": 8, "report_every": 30, "evaluate_every": 30}
        | {"precision": "float32", "checkpoint_every": 30},
        optimizer={"name": "adamw", "lr": 0.001, "warmup_steps": 1},
    )


def shape_of(vocab_size: int) -> AlbertConfig:
    """Returns the shape of a tiny encoder, whose random weights tell texts apart."""
    return SHAPE.replace(vocab_size=vocab_size, initializer_range=0.3)
