"""Examples are in the language of a model, and fit its task."""

import json
import random

import pytest
import tensorflow as tf

from albert_keras.serving.kit.example_requests import example_requests
from albert_keras.serving.sample_texts import sample_texts, texts_for
from albert_keras.tasks.kinds import KINDS, TAGGING
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import train_vocabulary

_SUBJECTS = (
    "Der alte Mann öffnete langsam die Tür",
    "Die Kapitänin fuhr an der Küste entlang",
    "Niemand war auf dem dunklen Flur",
    "Meine Nachbarin schloss das Fenster wieder",
    "Das Schiff verließ die Stadt um sechs Uhr morgens",
    "Ein Brief aus Lissabon kam drei Wochen zu spät",
)
_ENDS = (
    "und niemand wusste, warum.",
    "während die Kinder noch schliefen.",
    "weil die Straße nach Norden gesperrt war.",
    "obwohl es nicht mehr regnete.",
    "wegen des dichten Nebels.",
    "also blickte sie auf das Meer.",
)


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    """Returns the folder of a German vocabulary."""
    corpus = [f"{subject} {end}" for subject in _SUBJECTS for end in _ENDS]
    return train_vocabulary(
        corpus, tmp_path_factory.mktemp("de") / "de", size=105, strip_accents=True
    ).path


@pytest.fixture(scope="module")
def invented(tmp_path_factory):
    """Returns the folder of a vocabulary of an invented language in Georgian letters."""
    rng = random.Random(0)
    words = ["".join(rng.choices("აბგდევზთიკლმნოპ", k=rng.randint(3, 7))) for _ in range(60)]
    corpus = [" ".join(rng.choices(words, k=9)) for _ in range(300)]
    return train_vocabulary(
        corpus, tmp_path_factory.mktemp("xx") / "xx", size=115, strip_accents=True
    ).path


def test_the_language_is_the_one_of_the_vocabulary(tiny_tokenizer, german):
    assert texts_for(tiny_tokenizer).language == "en"
    texts = texts_for(Tokenizer.load(german))
    assert texts.language == "de" and texts.masked.startswith("Der alte Mann")
    assert texts.masked.count("[MASK]") == 2


def test_other_languages_get_words_of_the_vocabulary(invented):
    tokenizer = Tokenizer.load(invented)
    texts = texts_for(tokenizer)
    assert texts.language is None and texts.masked.count("[MASK]") == 1
    for text in (texts.first, texts.second, texts.context, texts.question, texts.words):
        assert text and tokenizer.unk_id not in tokenizer.encode(text)
    assert len(texts.context.split()) == 12


def test_all_languages_have_all_texts(tmp_path):
    from albert_keras.serving.sample_texts import _table

    assert sample_texts(tmp_path) == _table()["en"]  # no tokenizer
    for texts in _table().values():
        assert all(texts) and len(texts.options) == 3 and "[MASK]" in texts.masked
        assert len(texts.words.split()) > 5


#: Inputs of the signatures that a kind of task has in addition to the signatures of all models.
SIGNATURES = {
    "classification": {"serving_default": ["text"], "text_pair": ["first", "second"]},
    "regression": {"serving_default": ["text"]},
    "choice": {"multiple_choice": ["context", "question", "options"]},
    "tagging": {"tags": ["text"]},
    "spans": {"serving_default": ["text"], "question_answering": ["question", "context"]},
    "spans_or_none": {"question_answering": ["question", "context"]},
}
TASKS = {"classification": "mnli", "regression": "regression", "choice": "race", "spans": "squad1"}
TASKS |= {"tagging": "tagging", "spans_or_none": "squad2"}


def write_version(folder, kind, tokenizer_folder):
    """Writes a SavedModel with the inputs of a kind of task, and what is known about the task."""
    specs = {"options": tf.TensorSpec([None, None], tf.string, "options")}
    signatures = {}
    for name, inputs in SIGNATURES[kind].items():
        taken = [specs.get(one, tf.TensorSpec([None], tf.string, one)) for one in inputs]
        signatures[name] = tf.function(
            lambda *texts: {"text": tf.identity(texts[0])}, input_signature=taken
        )
    if kind in ("classification", "regression"):
        examples = [tf.TensorSpec([None], tf.string, "inputs")]
        name, output = (
            ("classify", "classes") if kind == "classification" else ("regress", "outputs")
        )
        signatures[name] = tf.function(
            lambda inputs: {output: tf.identity(inputs)}, input_signature=examples
        )
    tf.saved_model.save(tf.Module(), str(folder), signatures=signatures)
    Tokenizer.load(tokenizer_folder).save(folder / "tokenizer")
    config = {"name": TASKS[kind], "text": "a"} if kind == "regression" else {"name": TASKS[kind]}
    config |= {"labels": ["O", "B-X"]} if KINDS[kind] is TAGGING else {}
    task = {"name": TASKS[kind], "kind": kind, "config": config}
    (folder / "export.json").write_text(json.dumps({"kind": "finetuning", "task": task}))


@pytest.mark.parametrize("kind", SIGNATURES)
def test_requests_fit_the_kind_of_the_model_and_its_language(kind, german, tmp_path):
    write_version(tmp_path / "1", kind, german)
    texts = texts_for(Tokenizer.load(german))
    requests = {body["signature_name"]: body for _, body in example_requests(tmp_path / "1")}
    assert "[MASK]" not in json.dumps(requests) and "{}" not in json.dumps(requests)
    pair = {"first": [texts.first], "second": [texts.second]}
    asked = {"question": [texts.question], "context": [texts.context]}
    expected = {
        "classification": {"text_pair": pair, "serving_default": {"text": ["\t".join(texts[2:4])]}},
        "regression": {"serving_default": {"text": [texts.first]}},
        "choice": {"multiple_choice": asked | {"options": [texts.options]}},
        "tagging": {"tags": {"text": [texts.words]}},
        "spans": {"question_answering": asked},
        "spans_or_none": {"question_answering": asked},
    }[kind]
    for name, inputs in expected.items():
        assert requests[name]["inputs"] == inputs
