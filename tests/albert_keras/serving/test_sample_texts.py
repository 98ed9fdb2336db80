"""Examples are in the language of a model, and fit its task."""

from albert_keras.serving.sample_texts import _table, sample_texts, texts_for
from albert_keras.tasks.kinds import KINDS, task_class
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


def test_the_language_is_the_one_of_the_vocabulary(tiny_tokenizer, tmp_path):
    corpus = [f"{subject} {end}" for subject in _SUBJECTS for end in _ENDS]
    german = train_vocabulary(corpus, tmp_path / "de", size=105, strip_accents=True).path
    assert texts_for(tiny_tokenizer).language == "en"
    texts = texts_for(Tokenizer.load(german))
    assert texts.language == "de" and texts.masked.startswith("Der alte Mann")


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
