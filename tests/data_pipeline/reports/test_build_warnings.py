"""Settings that do not suit a corpus are noticed before the build."""

import pytest

from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from data_pipeline.reports.build_warnings import check_before_build
from data_pipeline.settings import SettingsError

TEXTS = {
    "en": "The old ferry left the harbour, and nobody wondered why it was so late. ",
    "de": "Über dem Fluß hörte man früh die Glocken; der Müller öffnete müde die Tür. ",
    "ru": "Все счастливые семьи похожи друг на друга, каждая несчастлива по-своему. ",
    "ja": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
    "mixed": "Паром ушёл. The ferry left the harbour, and nobody wondered why, he said. ",
}


@pytest.fixture
def warnings_of(tiny_tokenizer, tmp_path, caplog):
    """Returns a function of a text, the number of its documents and settings."""

    def check(text, count=40, **settings):
        for number in range(count):
            (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8")
        config = PretrainingDataConfig(**{"max_seq_length": 64} | settings)
        with caplog.at_level("WARNING", "data_pipeline"):
            check_before_build(str(tmp_path), tiny_tokenizer, config)
        return caplog.messages

    return check


@pytest.mark.parametrize("language", ["en", "de", "ru", "ja"])
def test_a_corpus_in_its_language_that_fills_its_records_causes_no_warning(language, warnings_of):
    assert not warnings_of(TEXTS[language] * 20, language=language)


@pytest.mark.parametrize(
    "text, language, written, found, advice",
    [
        ("en", "ja", "Han and Hiragana and Katakana", "Latin 100%", "af, az, "),
        ("ru", "en", "Latin", "Cyrillic 100%", "be, bg, kk, mk, ru, sr or uk"),
        ("ja", "en", "Latin", "Hiragana", "ja, or `--splitter line`"),
    ],
)
def test_a_language_of_another_script_is_refused(
    text, language, written, found, advice, warnings_of
):
    with pytest.raises(InputError) as refused:
        warnings_of(TEXTS[text] * 20, language=language)
    shown = str(refused.value)
    assert f"`{language}` is written in {written}, but the letters of a sample are" in shown
    assert found in shown and advice in shown and f"Received: language={language!r}" in shown


def test_a_splitter_without_rules_of_a_language_takes_every_script(warnings_of):
    assert not warnings_of(TEXTS["ru"] * 20, language="en", splitter="line")


@pytest.mark.parametrize(
    "text, language, message",
    [
        ("mixed", "ru", "`ru`, which is written in Cyrillic: the letters of a sample are Latin"),
        ("en", "de", "`de`: a sample has almost no `äöüß`"),
        ("de", "en", "`en`: a sample contains many letters other than a-z, such as `ü"),
    ],
)
def test_letters_that_are_unusual_for_the_language_cause_a_warning(
    text, language, message, warnings_of
):
    (warning,) = warnings_of(TEXTS[text] * 20, language=language)
    assert warning.startswith("The corpus does not seem to be in the language")
    assert message in warning


def test_documents_that_are_too_short_for_the_records_cause_a_warning(warnings_of):
    (warning,) = warnings_of(TEXTS["en"], count=60, max_seq_length=256)
    assert "% of all positions will be padding: half of the records have at most" in warning
    assert "`max_seq_length` is 256. Records with `--max-seq-length 128`" in warning


def test_full_sentences_join_short_documents_without_padding(warnings_of):
    settings = {"max_seq_length": 256, "input_format": "full-sentences"}
    assert not warnings_of(TEXTS["en"], count=60, **settings)


def test_records_longer_than_the_released_models_cause_a_warning(warnings_of):
    (warning,) = warnings_of(TEXTS["en"] * 400, count=2, max_seq_length=1024)
    assert "`--set model.max_position_embeddings=1024`" in warning


def test_records_longer_than_any_model_takes_are_refused():
    PretrainingDataConfig(max_seq_length=8192)
    with pytest.raises(SettingsError, match="must be at most 8192; .* Received: max_seq_length=1"):
        PretrainingDataConfig(max_seq_length=100_000)
