"""Examples are in the language of a model, and fit its task."""

import json

import pytest

from albert_keras.serving.sample_texts import _table, sample_texts
from albert_keras.tasks.kinds import KINDS, task_class


@pytest.mark.parametrize("language, first", [("de", "Sie öffnete"), (None, "..."), ("xx", "...")])
def test_the_language_is_the_one_that_was_given_or_there_are_no_texts(language, first, tmp_path):
    record = {"run": {"data": {"language": language}}}
    (tmp_path / "export.json").write_text(json.dumps(record))
    assert sample_texts(tmp_path).first.startswith(first)


def test_all_languages_have_all_texts():
    for texts in _table().values():
        assert all(texts) and len(texts.options) == 3 and "[MASK]" in texts.masked
        assert len(texts.words.split()) > 5
        assert all(set(texts.example(one)) == set(one.inputs) for one in map(task_class, KINDS))


def test_an_example_is_what_the_kind_of_the_model_asks_for():
    texts = _table()["de"]
    assert texts.example(None) == {"text": texts.masked}
    assert texts.example(task_class("tagging")) == {"text": texts.words}
    pair = {"text": texts.first, "pair": texts.second}
    assert texts.example(task_class("classification"), takes_pair=True) == pair
