"""Counts of words and word pairs are a baseline that learns what they can, within its limits."""

import random

import pytest

from albert_keras.tasks import baselines
from albert_keras.tasks.baselines import word_model_answers
from albert_keras.tasks.examples import TaggedExample, TextExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig

FILLERS = "the old ferry left our small harbour before sunrise and nobody knew why".split()


def task_of(name="classification", labels=("bad", "good"), **settings):
    labels = {} if name == "regression" else {"labels": labels}
    return build_task(TaskConfig(name=name, text="text", **{"label": "label"} | labels | settings))


def texts(count, words, seed=0):
    """Returns texts with one of some words each, TextExamples labelled by the names of the words.

    `words` maps a label to its words.
    """
    rng = random.Random(seed)
    examples = []
    for number in range(count):
        label = rng.choice(sorted(words))
        text = rng.sample(FILLERS, 6)
        text.insert(rng.randrange(6), rng.choice(words[label]))
        examples.append(TextExample(str(number), " ".join(text), None, label))
    return examples


def answers_of(task, train, dev):
    return word_model_answers(task, train, {"dev": dev})["dev"]


WORDS = {"bad": ["dull", "tired"], "good": ["funny", "warm"]}


def test_words_that_determine_the_class_are_learned_and_answers_are_deterministic():
    task, train, dev = task_of(), texts(120, WORDS), texts(50, WORDS, seed=1)
    answers = answers_of(task, train, dev)
    assert task.scores(dev, answers)["accuracy"] == 1
    assert list(answers[0].probabilities) == ["bad", "good"]
    assert answers == answers_of(task, train, dev)


def test_scripts_without_spaces_are_learned_and_a_class_without_examples_is_never_answered():
    task, rng = task_of(labels=("bad", "good", "fair", "odd")), random.Random(0)

    def sentences(count):
        for number in range(count):
            label, sign = rng.choice((("bad", "悲"), ("good", "喜"), ("fair", "平")))
            text = "".join(rng.sample("天地玄黄宇宙洪荒日月盈昃", 8))
            yield TextExample(str(number), text[:4] + sign + text[4:], None, label)

    train, dev = list(sentences(120)), list(sentences(40))
    answers = answers_of(task, train, dev)
    assert task.scores(dev, answers)["accuracy"] == 1
    assert all(answer.probabilities["odd"] < 1e-6 for answer in answers)


def test_whether_two_texts_share_their_words_is_learned_for_words_never_seen():
    task, rng = task_of("pair", ("different", "same"), pair="b"), random.Random(0)

    def pairs(count, first_word):
        for number in range(count):
            words = [f"w{first_word + rng.randrange(500)}" for _ in range(12)]
            is_same = rng.random() < 0.5
            second = rng.sample(words[:6], 6) if is_same else words[6:]
            label = "same" if is_same else "different"
            yield TextExample(str(number), " ".join(words[:6]), " ".join(second), label)

    train, dev = list(pairs(200, 0)), list(pairs(60, 1000))
    answers = answers_of(task, train, dev)
    assert task.scores(dev, answers)["accuracy"] > 0.95


def test_several_labels_and_several_scores_are_predicted(caplog):
    caplog.set_level("INFO")
    train, dev = texts(120, WORDS), texts(40, WORDS, seed=1)
    two = {"bad": ("bad", "all"), "good": ("good", "all")}
    task = task_of(label=("bad", "good", "all", "none"), labels=("bad", "good", "all", "none"))
    train, dev = ([one._replace(label=two[one.label]) for one in part] for part in (train, dev))
    answers = answers_of(task, train, dev)
    assert [set(answer.labels) for answer in answers] == [set(one.label) for one in dev]
    assert "thresholds" not in caplog.text  # they would pass for those of the model
    task = task_of("regression", label=("first", "second"))
    both = {"bad": (0.0, 4.0), "good": (1.0, 2.0)}
    train, dev = ([one._replace(label=both[one.label[0]]) for one in part] for part in (train, dev))
    answers = answers_of(task, train, dev)
    assert task.scores(dev, answers)["pearson"] > 0.9


def test_of_more_examples_than_the_limit_the_same_selection_is_used(monkeypatch):
    task, train, dev = task_of(), texts(120, WORDS), texts(50, WORDS, seed=1)
    monkeypatch.setattr(baselines, "MAX_TEXTS", 20)
    few = answers_of(task, train, dev)
    assert few == answers_of(task, list(train), dev) != answers_of(task, train[:20], dev)


def test_a_second_split_is_answered_with_what_was_tuned_on_the_first():
    task = task_of(label=("bad", "good"))
    train = [one._replace(label=(one.label,)) for one in texts(120, WORDS)]
    splits = {"dev": train[:3], "more": train[3:30]}
    answers = word_model_answers(task, train, splits)
    assert [set(one.labels) for one in answers["more"]] == [{*one.label} for one in splits["more"]]


def sentences(count, seed):
    """Returns sentences in which words after "in" are places unless in small letters."""
    rng, examples = random.Random(seed), []
    for number in range(count):
        name = "".join(rng.sample("abcdefgh", 5))
        place, word = (name.capitalize(), name) if rng.random() < 0.5 else (name, name.upper())
        tag = "B-LOC" if place[0].isupper() else "O"
        words = *rng.sample(FILLERS, 3), "in", place, word
        examples.append(TaggedExample(str(number), words, ("O",) * 4 + (tag, "O")))
    return examples


def test_tags_are_learned_from_neighbours_and_case_for_words_never_seen():
    task = build_task(TaskConfig(name="tagging", labels=("B-LOC", "O", "I-LOC")))
    train, dev = sentences(100, 1), sentences(50, 2)
    answers = answers_of(task, train, dev)
    assert task.scores(dev, answers)["entity_f1"] > 0.95


def test_4000_rows_of_sst_2_give_the_known_accuracy(shared_data):
    task = build_task(TaskConfig(name="sst-2", data_dir=str(shared_data / "glue")))
    train, dev = task.read("train")[:4000], task.read("dev")
    answers = answers_of(task, train, dev)
    assert task.scores(dev, answers)["accuracy"] == pytest.approx(0.775, abs=0.01)
