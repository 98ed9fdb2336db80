"""A check finds what was planted in a corpus, and says what a build would make of it."""

import json

import pytest

from data_pipeline.building.build import build_records
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from data_pipeline.reports.corpus_check import check_corpus
from data_pipeline.reports.word_runs import plain_words
from data_pipeline.text.corpus import read_corpus

SHORT = PretrainingDataConfig(max_seq_length=32)


def write_lines(path, texts):
    lines = (json.dumps({"text": text}, ensure_ascii=False) for text in texts)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_documents_paragraphs_sentences_words_and_pieces_are_counted(tmp_path, tiny_tokenizer):
    texts = ["One two. Three.\nFour.", "Five six seven.", " \n", "\x07"]
    path = write_lines(tmp_path / "x.jsonl", texts)
    report = check_corpus([path], tiny_tokenizer)
    sentences = ["One two.", "Three.", "Four.", "Five six seven."]
    pieces = [len(tiny_tokenizer.encode(sentence)) for sentence in sentences]
    assert report.counts == {
        "documents": 3,
        "paragraphs": 4,
        "sentences": 4,
        "words": 8,
        "characters": 37,
        "pieces": sum(pieces),
        "unknown_pieces": 0,
    }
    assert report.sentence_lengths["max"] == max(pieces)
    assert (report.files, report.bytes) == (1, path.stat().st_size)
    assert report.problems == []


def test_each_bad_file_is_named_with_the_reason_of_the_build_and_the_rest_goes_on(tmp_path):
    files = {
        "bad.jsonl": b'{"text": "Good."}\n{"text": "Too."}\n{"text": 1}',
        "bom.txt": b"\xef\xbb\xbfOne. Two.",
        "crlf.txt": b"One.\r\nTwo.",
        "empty.txt": b"",
        "good.txt": b"One. Two.",
        "latin1.txt": "Grüße. Zwei.\r\n".encode("latin-1"),
        "utf16.txt": "One. Two.".encode("utf-16"),
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    report = check_corpus([tmp_path])
    bad = "bad.jsonl", "latin1.txt", "utf16.txt"
    for problem, name in zip(report.problems, bad, strict=True):
        with pytest.raises(InputError) as refused:
            list(read_corpus([tmp_path / name]))
        assert problem == str(refused.value)
    assert "such as CP1252, CP1251" in report.problems[1]
    assert report.counts["documents"] == 4  # one was made of bad.jsonl before the fault


def test_a_corpus_without_text_or_records_is_a_problem(tmp_path, tiny_tokenizer):
    (tmp_path / "x.txt").write_text("\n \n")
    (problem,) = check_corpus([tmp_path], tiny_tokenizer).problems
    assert problem == "The corpus is empty: it contains no sentence."


TEXTS = {
    "en": "The old ferry left the harbour, and nobody wondered why it was so late. ",
    "de": "Über dem Fluß hörte man früh die Glocken; der Müller öffnete müde die Tür. ",
    "ru": "Все счастливые семьи похожи друг на друга, каждая несчастлива по-своему. ",
    "ja": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
}
NEEDED = "The language of the text must be given, because"


@pytest.fixture
def build(tiny_tokenizer, tmp_path):
    """Returns a function that builds records of a text, which is repeated."""

    def build(text, **settings):
        (tmp_path / "x.txt").write_text(text * 200, encoding="utf-8")
        config = PretrainingDataConfig(max_seq_length=32, **settings)
        return build_records([tmp_path / "x.txt"], tiny_tokenizer, tmp_path / "out", config)

    return build


@pytest.mark.parametrize("language", ["en", "ru"])
def test_a_corpus_that_the_tokenizer_does_not_know_causes_a_warning(language, build, caplog):
    build(TEXTS[language], language=language)
    assert ("The tokenizer does not know" in caplog.text) == (language == "ru")


@pytest.mark.parametrize("language", ["de", "ja"])
def test_a_build_needs_a_language_that_is_not_english(language, build, tmp_path):
    with pytest.raises(InputError, match=NEEDED) as refused:
        build(TEXTS[language])
    assert "`albert-keras data build` has `--language`" in str(refused.value)
    assert not (tmp_path / "out").exists()
    (problem,) = check_corpus([tmp_path / "x.txt"]).problems
    assert problem == str(refused.value)
    given = PretrainingDataConfig(language=language)
    assert not check_corpus([tmp_path / "x.txt"], config=given).problems
    assert not check_corpus([tmp_path / "x.txt"], None, SHORT, "sentences").problems
    assert build(TEXTS[language], language=language).info.config["language"] == language


def test_a_few_names_with_accents_are_english(build):
    assert build(TEXTS["en"] * 20 + "Zoë. ").info.num_records
    with pytest.raises(InputError, match=NEEDED):
        build(TEXTS["en"] * 10 + "Zoë. ")


def edition(text):
    """Returns the same words with other case, accents and punctuation."""
    words = text.replace("é", "e\u0301").split()
    return "\n".join(
        f"«{word.title()}»," if at % 3 else f"{word} —" for at, word in enumerate(words)
    )


@pytest.mark.parametrize(
    "sentence",
    [
        "le café numéro {} ferme tôt, dit l'hôte au client {}.",
        "كَتَبَ الرجلُ رقم {} رسالةً إلى المدينة {}.",
    ],
)
def test_a_leak_is_found_in_another_edition(sentence, tmp_path):
    def spelled(number):  # as numbers make no difference
        return str(number).translate(str.maketrans("0123456789", "abcdefghij"))

    first = [sentence.format(spelled(n), spelled(3 * n)) for n in range(400)]
    second = [sentence.format(spelled(n + 10_000), spelled(7 * n)) for n in range(200)]
    (tmp_path / "a.txt").write_text(" ".join(first), encoding="utf-8")
    kept = [edition(one) for one in first[:300]]
    (tmp_path / "dev.txt").write_text("\n".join([*kept, *second]), encoding="utf-8")
    report = check_corpus([tmp_path / "a.txt"], heldout=[tmp_path / "dev.txt"])
    size = len(plain_words(first[0]))
    shared = (300 * size - 7) / (500 * size - 7)
    assert report.held_out_share == pytest.approx(shared, abs=0.08)
    [leak] = report.near_duplicates
    assert (leak.name, leak.other) == ("dev.txt", "a.txt")


def test_a_leak_from_many_texts_is_added_up(tmp_path, tiny_corpus):
    for number in range(10):
        sentences = tiny_corpus[number * 10 : number * 10 + 10]
        (tmp_path / f"{number}.txt").write_text(" ".join(sentences))
    (tmp_path / "dev").write_text(" ".join(tiny_corpus[:300]))
    report = check_corpus([tmp_path / "*.txt"], heldout=[tmp_path / "dev"])
    assert report.held_out_share == pytest.approx(1 / 3, abs=0.08)
    assert [pair.share for pair in report.near_duplicates] == [report.held_out_share]
    assert check_corpus([tmp_path / "*.txt"]).held_out_share is None
