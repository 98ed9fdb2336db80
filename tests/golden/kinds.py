"""The kinds of golden answers: their models, examples and scores."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import albert_keras
from albert_keras.tasks import metrics
from albert_keras.tasks.examples import Answer, QuestionExample
from albert_keras.tasks.spans.scores import official_scores
from albert_keras.tasks.tagging.scores import entity_scores
from tests.golden import slices
from tests.golden.slices import Slice

#: The class of the model of each kind, by its name in `albert_keras`.
CLASSES = {
    "classes": "AlbertForClassification",
    "labels": "AlbertForMultiLabel",
    "numbers": "AlbertForRegression",
    "tags": "AlbertForTokenClassification",
    "spans": "AlbertForQuestionAnswering",
    "options": "AlbertForMultipleChoice",
    "similarity": "AlbertForSimilarity",
}
EMOTIONS = (
    "anger anticipation disgust fear joy love optimism pessimism sadness surprise trust".split()
)
_WNUT = ("corporation", "creative-work", "group", "location", "person", "product")
TAGS = ["O", *(f"{edge}-{name}" for name in _WNUT for edge in "BI")]
_SENTENCES = ("sentence1", "sentence2")
#: What answers copy from the examples, whose texts are not stored.
_COPIED = ("id", "words", "option")


class Model(NamedTuple):
    """A model that answers the slices of one or several kinds."""

    of: str  # a name in `CLASSES`
    settings: Mapping[str, Any]  # of `from_preset`


class Kind(NamedTuple):
    """Slices of the same format."""

    model: str  # a name in `MODELS`
    read: Callable[[Path], Slice]  # from the folder of the data
    score: Callable[[Slice, list], dict[str, float]]  # from the examples and the answers


_PAIRS = {"labels": ["0", "1"], "pairs": True, "sequence_length": 48}
_QUESTIONS = {"sequence_length": 96, "doc_stride": 24, "max_query_length": 24}
_QUESTIONS |= {"n_best": 4, "max_answer_length": 20}
MODELS = {
    "single": Model("classes", {"labels": ["0", "1"], "pairs": False, "sequence_length": 24}),
    "pair": Model("classes", _PAIRS),
    "separate": Model("classes", _PAIRS | {"pair_encoding": "separate"}),
    "three": Model("classes", _PAIRS | {"labels": ["contradiction", "entailment", "neutral"]}),
    "scores": Model("numbers", {"pairs": True, "sequence_length": 48}),
    "labels": Model("labels", {"labels": EMOTIONS, "pairs": False, "sequence_length": 32}),
    "numbers": Model("numbers", {"labels": EMOTIONS[:3], "pairs": False, "sequence_length": 32}),
    "tags": Model("tags", {"labels": TAGS, "sequence_length": 32}),
    "similarity": Model("similarity", {"sequence_length": 32}),
    "options": Model("options", {"sequence_length": 128, "max_qa_length": 24}),
    "spans": Model("spans", _QUESTIONS),
    "spans or none": Model("spans", _QUESTIONS | {"can_be_none": True}),
}


def build_model(name: str, head: Mapping[str, Any], source: Any = "albert-mini-en") -> Any:
    """Returns a model whose encoder is the shipped one and whose head is random.

    Args:
        name: In `MODELS`.
        head: "seed" and "scale" of the weights that are matrices; the "bias" of the outputs, zeros
            without one; and the "thresholds" of the model.
    """
    model_class = getattr(albert_keras, CLASSES[MODELS[name].of])
    model = model_class.from_preset(
        source, thresholds=head.get("thresholds"), **MODELS[name].settings
    )
    draws = np.random.default_rng(head["seed"])
    for weight in model.head.weights:
        if len(weight.shape) > 1:
            size = max(weight.shape)
            weight.assign(draws.normal(0, head["scale"] / size**0.5, weight.shape))
    if "bias" in head:
        model.head.output_bias.assign(head["bias"])
    return model


def plain(answers: list) -> list[dict[str, Any]]:
    """Returns named answers as JSON has them, without what they copy from the examples."""
    found = []
    for answer in answers:
        values = {name: one for name, one in answer._asdict().items() if name not in _COPIED}
        if "nbest" in values:  # their probabilities, without their texts
            values["nbest"] = [
                [value for name, value in one.items() if name != "text"] for one in values["nbest"]
            ]
        found.append(_plain(values))
    return found


def _plain(value):
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    return round(float(value), 6) if hasattr(value, "__float__") and not _is_whole(value) else value


def _is_whole(value):
    return isinstance(value, bool | int | str) or value is None


# === Scores


def _classes(names, *metric):
    def score(examples, answers):
        truth = [names.index(one) for one in examples.truth]
        return metrics.scores(metric, truth, [names.index(one.label) for one in answers])

    return score


def _numbers(examples, answers):
    truth, found = np.array(examples.truth, float), [one.score for one in answers]
    return metrics.scores(("pearson", "spearman", "mean_squared_error"), truth, found)


def _of_each_number(examples, answers):
    truth = np.array(examples.truth, float)
    return {
        name: metrics.METRICS["spearman"](truth[:, at], [one.scores[name] for one in answers])
        for at, name in enumerate(EMOTIONS[:3])
    }


def _labels(examples, answers):
    truth = np.array(examples.truth, int)
    found = np.array([[name in one.labels for name in EMOTIONS] for one in answers], int)
    return {
        "micro_f1": metrics.METRICS["f1"](truth.reshape(-1), found.reshape(-1)),
        "exact_match": float((truth == found).all(axis=1).mean()),
    }


def _tags(examples, answers):
    return entity_scores(examples.truth, [one.tags for one in answers], TAGS)


def _options(examples, answers):
    return metrics.scores(["accuracy"], examples.truth, [one.choice for one in answers])


def _spans(version):
    def score(examples, answers):
        contexts, questions = (examples.columns[name] for name in ("context", "question"))
        rows = zip(examples.ids, questions, contexts, examples.truth, strict=True)
        known = [
            QuestionExample(id, question, context, tuple(Answer(one, 0) for one in truth))
            for id, question, context, truth in rows
        ]
        predictions = {id: one.text for id, one in zip(examples.ids, answers, strict=True)}
        return official_scores(known, predictions, version)

    return score


def _glue(model, folder, texts, label, score, file="dev.tsv", **settings):
    return Kind(
        model, lambda data: slices.table(data / folder / file, texts, label, **settings), score
    )


def _tweets(model, label, score):
    return _glue(model, "tables", ("Tweet",), label, score, "emotions-dev.txt")


_ACCURACY = _classes(["0", "1"], "accuracy")
_WITH_F1 = _classes(["0", "1"], "accuracy", "f1")


def _entails(examples, answers):
    names = ["entailment", "not_entailment"]
    truth = [names.index(one) for one in examples.truth]
    return metrics.scores(["accuracy"], truth, [int(one.label) for one in answers])


KINDS = {
    "cola": _glue("single", "glue/CoLA", (3,), 1, _classes(["0", "1"], "matthews", "accuracy")),
    "sst-2": _glue("single", "glue/SST-2", ("sentence",), "label", _ACCURACY),
    "mrpc": _glue("pair", "glue/MRPC", ("#1 String", "#2 String"), "Quality", _WITH_F1),
    "mrpc separate": _glue(
        "separate", "glue/MRPC", ("#1 String", "#2 String"), "Quality", _WITH_F1
    ),
    "qqp": _glue(
        "pair", "glue/QQP", ("question1", "question2"), "is_duplicate", _WITH_F1, quoted=True
    ),
    "qnli": _glue("pair", "glue/QNLI", ("question", "sentence"), "label", _entails),
    "rte": _glue("pair", "glue/RTE", _SENTENCES, "label", _entails),
    "wnli": _glue("pair", "glue/WNLI", _SENTENCES, "label", _ACCURACY),
    "mnli": _glue(
        "three",
        "glue/MNLI",
        _SENTENCES,
        "gold_label",
        _classes(["contradiction", "entailment", "neutral"], "accuracy"),
        "extra_train_rows.tsv",
    ),
    "sts-b": _glue("scores", "glue/STS-B", _SENTENCES, "score", _numbers),
    "similarity": _glue("similarity", "glue/STS-B", _SENTENCES, "score", _numbers),
    "labels": _tweets("labels", EMOTIONS, _labels),
    "numbers": _tweets("numbers", EMOTIONS[:3], _of_each_number),
    "tags": Kind("tags", lambda data: slices.tagged(data / "tables/wnut17-dev.conll"), _tags),
    "race": Kind("options", lambda data: slices.race(data / "race/RACE/dev"), _options),
    "squad1": Kind("spans", lambda data: slices.squad(data / "squad/dev-v1.1.json"), _spans(1)),
    "squad2": Kind(
        "spans or none", lambda data: slices.squad(data / "squad/dev-v2.0.slice.json"), _spans(2)
    ),
}
