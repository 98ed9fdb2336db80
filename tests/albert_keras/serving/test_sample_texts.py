"""Examples are in the language of a model, and fit its task."""

import re

from albert_keras.serving.sample_texts import _table, sample_texts, texts_for
from albert_keras.tasks.kinds import KINDS, task_class
from data_pipeline.text.letters import UNSPACED_CHARACTER, UNSPACED_SCRIPTS
from data_pipeline.tokenizers.tokenization import Tokenizer


def tokenizer_of(text, folder):
    """Returns a tokenizer whose vocabulary has the words of a text."""
    words = re.findall(f"{UNSPACED_CHARACTER.pattern}|[^\\W{UNSPACED_SCRIPTS}]\\S*", text)
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *dict.fromkeys(words)]
    (folder / "vocab.txt").write_text("\n".join(pieces), encoding="utf-8")
    return Tokenizer.load(folder / "vocab.txt", lower_case=False)


def test_the_language_is_the_one_of_the_vocabulary(tmp_path):
    for language, texts in _table().items():
        text = " ".join([texts.first, texts.second, texts.context, texts.question])
        assert texts_for(tokenizer_of(text, tmp_path)).language == language


def test_a_language_without_texts_does_not_get_those_of_another_one(tiny_tokenizer, tmp_path):
    bulgarian = "Лодките се върнаха чак късно вечерта. На кея жените чакаха вече час."
    for text in (bulgarian, "Båtene kom tilbake sent på kvelden, og ingen ville snakke om været."):
        assert texts_for(tokenizer_of(text, tmp_path)).language == "en"
    assert texts_for(tiny_tokenizer).language == "en"


def test_all_languages_have_all_texts(tmp_path):
    assert sample_texts(tmp_path) == _table()["en"]  # no tokenizer
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
