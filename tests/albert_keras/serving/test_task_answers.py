"""An export answers what its run answers, and without its other files what its graph gives."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.serving.graph.task_models import build_task_model
from albert_keras.serving.predictor import Predictor
from albert_keras.serving.task_answers import answer_by_signatures, call_by_rows
from albert_keras.tasks.classification.task import ClassAnswer
from albert_keras.tasks.finetuned import open_finetuned
from data_pipeline.errors import InputError
from tests.albert_keras.serving.small_exports import (
    NULL_THRESHOLD,
    make_model,
    write_export,
    write_run,
)
from tests.albert_keras.tasks.small_tasks import make_task

SLOW = pytest.mark.slow
DIRTY = [
    "nul \0 and \x1c tab\t",
    "Ｆull wídth ½ ﬃ\u0301",
    "[CLS] A [MASK] [SEP] <unk>",
    "\u202e\u200b\U0001f469\u200d\U0001f52c",
    # Nothing in it twice: of equals the last digit would choose.
    " ".join(f"{number} ferries left harbour {number * 7}," for number in range(30)),
]


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


CONTEXTS = [text for text in DIRTY if text.isascii() and text.isprintable()]


@pytest.fixture(scope="module")
def exported(tiny_tokenizer, tiny_corpus, tmp_path_factory):
    """Returns a function of a kind that gives the folders of run and export, made once."""
    made, out = {}, tmp_path_factory.mktemp("tasks")

    def exported(kind):
        if kind not in made:
            task = make_task(kind)
            model = make_model(task, tiny_tokenizer)
            made[kind] = (
                write_run(out / kind, task, model, tiny_tokenizer, tiny_corpus),
                write_export(out / kind / "1", task, model, tiny_tokenizer),
            )
        return made[kind]

    return exported


@pytest.fixture(scope="module")
def loaded(exported):
    """Returns a function of a kind that gives the model and Predictor, loaded once."""
    loaded = {}

    def of_kind(kind):
        if kind not in loaded:
            run, export = exported(kind)
            loaded[kind] = open_finetuned(run), Predictor(export)
        return loaded[kind]

    return of_kind


@pytest.fixture
def copy(exported, tmp_path):
    """Returns a function of a kind that gives a copy of its export, to be changed."""
    return lambda kind: shutil.copytree(exported(kind)[1], tmp_path / kind)


def test_pairs_are_classified_as_by_the_run(loaded):
    model, predictor = loaded("classification")
    inputs = [{"text": a, "pair": b} for a in DIRTY for b in ("It left.", *DIRTY)]
    found = predictor.answer([*inputs, {"text": "Rain.", "pair": "", "id": "k7"}])
    expected = model.answers(model.examples([*inputs, {"id": "k7", "text": "Rain.", "pair": ""}]))
    assert type(found[0]) is ClassAnswer and found[-1].id == "k7" and found[3].id == "3"
    assert len({answer.label for answer in found}) > 1
    assert_alike(found, expected)


def test_questions_are_answered_as_by_the_run(loaded, tiny_corpus):
    model, predictor = loaded("spans_or_none")
    contexts = [*DIRTY, *CONTEXTS, *tiny_corpus[:4], " ".join(tiny_corpus[:6])]
    inputs = [{"context": text, "question": "Who left?\u0301"} for text in contexts]
    found, expected = predictor.answer(inputs), model.answers(model.examples(inputs))
    assert {bool(answer.text) for answer in found} == {True, False}
    assert_alike(found[len(DIRTY) :], expected[len(DIRTY) :])
    for one, other in zip(found, expected, strict=True):
        for name in ("text", "start", "end", "null_score"):
            assert_alike(getattr(one, name), getattr(other, name))
    between = [answer for answer in found if NULL_THRESHOLD <= answer.null_score < 0]
    assert between and not any(answer.text for answer in between)


@pytest.mark.parametrize(
    "kind",
    [
        "choice",
        "spans",
        "multi_label",
        "multi_regression",
        *(pytest.param(k, marks=SLOW) for k in ("regression", "tagging")),
    ],
)
def test_strings_give_what_the_task_answers(kind, tiny_tokenizer, tiny_corpus):
    task = make_task(kind)
    model = make_model(task, tiny_tokenizer)
    fields = {
        "regression": [{"text": text} for text in DIRTY],
        "multi_label": [{"text": text} for text in DIRTY],
        "multi_regression": [{"text": text} for text in DIRTY],
        "tagging": [{"text": text} for text in DIRTY],
        "choice": [{"context": t, "question": "_?", "options": ["ferry", t, ""]} for t in DIRTY],
        "spans": [{"context": text, "question": "Who?"} for text in CONTEXTS],
    }[kind]
    examples = [task.example(number, one) for number, one in enumerate(fields)]
    features = task.features(examples, tiny_tokenizer)
    inputs = features.batch(np.arange(len(features)))
    outputs = {name: value.numpy() for name, value in model(inputs).items()}
    expected = task.answers(examples, features, outputs)

    module = build_task_model(model, tiny_tokenizer, task)

    def ask(signature, **texts):
        found = module.functions[signature](**{name: tf.constant(texts[name]) for name in texts})
        return {name: value.numpy() for name, value in found.items()}

    by_strings = answer_by_signatures(ask, task, examples)
    if kind == "choice":  # longer than the graph tokenizes
        found, known = by_strings.pop(), expected.pop()
        assert found.dropped_tokens == pytest.approx(known.dropped_tokens, rel=0.05)
        assert_alike(found._replace(dropped_tokens=known.dropped_tokens), known)
    assert_alike(by_strings, expected)


def test_words_with_white_space_cannot_be_asked_by_strings():
    task = make_task("tagging")
    with pytest.raises(InputError, match="must not contain white space.*Received: 'New York'"):
        answer_by_signatures(None, task, [task.example(0, {"words": ["New York"]})])


def test_strings_are_sent_some_at_a_time_short_ones_first():
    sent = []

    def ask(signature, text):
        sent.append(text)
        return {"length": np.array([len(one) for one in text])}

    texts = ["x" * (number * 37 % 70) for number in range(70)]
    assert [row["length"] for row in call_by_rows(ask, "any", text=texts)] == list(map(len, texts))
    assert [len(batch) for batch in sent] == [32, 32, 6] and sum(sent, []) == sorted(texts)
    assert call_by_rows(ask, "any", text=[]) == []


def test_numbers_that_are_none_are_an_error():
    with pytest.raises(InputError, match="values of `score` that are not finite"):
        call_by_rows(lambda signature, text: {"score": np.array([np.nan])}, "any", text=["a"])


def test_without_its_record_a_task_is_not_guessed(copy):
    bare = copy("classification")
    (bare / "export.json").unlink()
    with pytest.raises(InputError, match="with its export.json"):
        Predictor(bare).answer({"text": "a", "pair": "b"})


@pytest.mark.parametrize(
    "inputs",
    [
        [{"text": " ", "pair": "a"}],
        [{"text": "a"}, {"text": "a", "pair": "b"}],
        [{"text": "a", "pair": "b", "id": "1"}, {"text": "a", "pair": "b"}],
        [{"text": "a", "pair": "\ud800"}],
        [{"text": "a", "pair": "b", "question": "c"}],
        ["a"],
        [3],
    ],
)
def test_what_cannot_be_asked_gets_the_words_of_the_run(loaded, inputs):
    model, predictor = loaded("classification")
    errors = []
    for ask in (model.examples, predictor.answer):
        with pytest.raises(InputError) as caught:
            ask(inputs)
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def change_record(folder, **changes):
    path = folder / "export.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("tuned", [None, {"null_threshold": "0"}])
def test_a_threshold_that_nobody_tells_is_not_made_up(copy, tuned):
    folder = copy("spans_or_none")
    change_record(folder, tuned=tuned)
    with pytest.raises(InputError, match="`tuned` in export.json must contain"):
        Predictor(folder).answer({"context": "It left.", "question": "Who?"})
