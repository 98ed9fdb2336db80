"""A check finds what was planted in a corpus, and says what a build would make of it."""

import json
import textwrap

import pytest

from data_pipeline.building.build import build_records
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from data_pipeline.reports.corpus_check import check_before_build, check_corpus
from data_pipeline.reports.word_runs import plain_words
from data_pipeline.text.corpus import read_corpus
from data_pipeline.text.corpus_formats import has_sentence_lines

SHORT = PretrainingDataConfig(max_seq_length=32)


def write_lines(path, texts):
    lines = (json.dumps({"text": text}, ensure_ascii=False) for text in texts)
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def books(tmp_path, tiny_corpus):
    """Returns a folder of 10 files of 3 documents with 12 sentences, all of one size."""
    folder = tmp_path / "books"
    folder.mkdir()
    for number in range(10):
        documents = [" ".join(tiny_corpus[begin : begin + 12]) for begin in (0, 12, 24)]
        documents[0] = f"{number} {documents[0]}"
        write_lines(folder / f"{number}.jsonl", documents)
    return folder


def test_documents_paragraphs_sentences_words_and_pieces_are_counted(tmp_path, tiny_tokenizer):
    texts = ["One two. Three.\nFour.", "Five six seven.", " \n", "\x07"]
    path = write_lines(tmp_path / "x.jsonl", texts)
    report = check_corpus([path], tiny_tokenizer)
    sentences = ["One two.", "Three.", "Four.", "Five six seven."]
    pieces = [len(tiny_tokenizer.encode(sentence)) for sentence in sentences]
    assert report.counts == {
        "documents": 3,
        "empty_documents": 1,
        "one_sentence_documents": 1,
        "paragraphs": 4,
        "sentences": 4,
        "words": 8,
        "characters": 37,
        "pieces": sum(pieces),
        "unknown_pieces": 0,
        "long_sentences": 0,
    }
    assert report.sentence_lengths["max"] == max(pieces)
    assert (report.files, report.bytes, report.share_read) == (1, path.stat().st_size, 1.0)
    assert (report.formats, report.problems) == ({"jsonl": 1}, [])


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
    assert [problem.file for problem in report.problems] == [
        str(tmp_path / name) for name in ("bad.jsonl", "latin1.txt", "utf16.txt")
    ]
    for problem in report.problems:
        with pytest.raises(InputError) as refused:
            list(read_corpus([problem.file]))
        assert problem.reason == str(refused.value)
    assert "CP1252 or CP1251" in report.problems[1].reason
    assert "UTF-16" in report.problems[2].reason
    assert report.files_without_text == [str(tmp_path / "empty.txt")]
    assert report.counts["documents"] == 4  # one was made of bad.jsonl before the fault


def test_repeated_documents_are_shares_of_the_text(tmp_path):
    texts = ["aaaa", "bbbb\ncccc", "aaaa", "dddd\ncccc", "aaaa"]
    report = check_corpus([write_lines(tmp_path / "x.jsonl", texts)])
    assert report.repeated_documents == 2 / 5
    assert report.repeated_text == pytest.approx(8 / 30)


def test_a_large_corpus_is_sampled_by_whole_files_and_its_share_told(books, tiny_tokenizer):
    size = sum(path.stat().st_size for path in books.iterdir())
    whole = check_corpus([books], tiny_tokenizer, SHORT)
    part = check_corpus([books], tiny_tokenizer, SHORT, sample_mb=0.25 * size / 1e6)
    assert (whole.share_read, part.share_read) == (1.0, pytest.approx(0.3))
    assert (whole.counts["documents"], part.counts["documents"]) == (30, 9)
    assert (part.files, part.bytes) == (10, size)
    assert part.estimate.records == pytest.approx(whole.estimate.records, rel=0.1)
    assert part.estimate.bytes == pytest.approx(whole.estimate.bytes, rel=0.1)


@pytest.mark.parametrize("input_format", ["segment-pair", "doc-sentences"])
def test_the_estimate_is_what_the_build_makes(books, tmp_path, tiny_tokenizer, input_format):
    config = PretrainingDataConfig(
        max_seq_length=32, short_seq_prob=0, copies=2, input_format=input_format
    )
    estimate = check_corpus([books], tiny_tokenizer, config).estimate
    result = build_records([books], tiny_tokenizer, tmp_path / "records", config)
    files = [path for path in (tmp_path / "records").iterdir() if path.name.startswith("pretrain")]
    counts = result.info.statistics
    assert estimate.records == pytest.approx(result.info.num_records, rel=0.01)
    assert estimate.bytes == pytest.approx(sum(path.stat().st_size for path in files), rel=0.02)
    assert estimate.kept_text == pytest.approx(result.kept_text, abs=0.01)
    padding = 1 - counts["real_positions"] / counts["positions"]
    assert estimate.padding == pytest.approx(padding, abs=0.01)


def test_a_corpus_without_text_or_records_is_a_problem(tmp_path, tiny_tokenizer):
    (tmp_path / "x.txt").write_text("\n \n")
    (problem,) = check_corpus([tmp_path], tiny_tokenizer).problems
    assert problem == ("", "The corpus is empty: it contains no sentence.")
    (tmp_path / "x.txt").write_text("the")
    config = PretrainingDataConfig(single_sentence_policy="skip")
    (problem,) = check_corpus([tmp_path], tiny_tokenizer, config).problems
    assert "no record" in problem.reason
    with pytest.raises(InputError, match="no record"):
        build_records([tmp_path / "x.txt"], tiny_tokenizer, tmp_path / "records", config)


TEXTS = {
    "en": "The old ferry left the harbour, and nobody wondered why it was so late. ",
    "de": "Über dem Fluß hörte man früh die Glocken; der Müller öffnete müde die Tür. ",
    "ru": "Все счастливые семьи похожи друг на друга, каждая несчастлива по-своему. ",
    "ru with marks": "Паром ушёл поздно вечером, и никто из нас не удивился этому. PageV01. ",
    "ja": "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。",
    "uk": "Човни повернулися лише пізно ввечері, і ніхто не хотів говорити про погоду. ",
    "twice": "Паром ушёл поздно вечером. ".encode().decode("latin-1").replace("\x85", ""),
    "mixed": "Паром ушёл. The ferry left the harbour, and nobody wondered why, he said. ",
}


UNKNOWN = "The tokenizer does not know"


@pytest.fixture
def warnings_of(tiny_tokenizer, tmp_path, caplog):
    """Returns a function of a text, the number of its documents and settings."""

    def check(text, count=40, **settings):
        for number in range(count):
            (tmp_path / f"{number}.txt").write_text(text, encoding="utf-8")
        config = PretrainingDataConfig(**{"max_seq_length": 64} | settings)
        with caplog.at_level("WARNING", "data_pipeline"):
            check_before_build(str(tmp_path), tiny_tokenizer, config)
        return [message for message in caplog.messages if UNKNOWN not in message]

    return check


def test_a_corpus_that_the_tokenizer_does_not_know_causes_a_warning(warnings_of, caplog):
    warnings_of(TEXTS["en"] * 20)
    assert not caplog.messages
    warnings_of(TEXTS["ru"] * 20, language="ru")
    assert UNKNOWN in caplog.text


def test_a_corpus_in_its_language_that_fills_its_records_causes_no_warning(warnings_of):
    for language in ("en", "de", "ru", "ja"):
        assert not warnings_of(TEXTS[language] * 20, language=language)


def test_a_language_of_another_script_is_refused(warnings_of):
    for text, language, written, found, advice in (
        ("en", "ja", "Han and Hiragana and Katakana", "Latin 100%", "choose en, or"),
        ("ru", "en", "Latin", "Cyrillic 100%", "choose ru, or"),
        ("ru with marks", "en", "Latin", "Cyrillic 9", "choose ru, or"),
    ):
        with pytest.raises(InputError) as refused:
            warnings_of(TEXTS[text] * 20, language=language)
        shown = str(refused.value)
        assert f"`{language}` is written in {written}, but the letters of the text are" in shown
        assert found in shown and advice in shown and f"language={language!r}" in shown


@pytest.mark.parametrize(
    "text, settings, message",
    [
        ("mixed", {"language": "ru"}, "`ru` is written in Cyrillic, but the letters of the text"),
        ("en", {"language": "de"}, "the text reads as `en`"),
        ("de", {"language": "en"}, "the text reads as `de`"),
        ("uk", {"language": "ru"}, "the text reads as `uk`"),
        ("twice", {"language": "en"}, "more than half of the text is in no known language"),
    ],
)
def test_what_does_not_suit_a_corpus_causes_a_warning(text, settings, message, warnings_of):
    found = warnings_of(TEXTS[text] * 400, count=2, **settings)
    # Letters that were encoded twice are a sign of their own.
    assert message in found[0] and (len(found) == 1 or text == "twice")


def test_documents_that_are_too_short_for_the_records_cause_a_warning(warnings_of):
    settings = {"max_seq_length": 256, "input_format": "full-sentences"}
    assert not warnings_of(TEXTS["en"], count=60, **settings)  # which join short documents
    (warning,) = warnings_of(TEXTS["en"], count=60, max_seq_length=256)
    assert "% of all positions will be padding: half of the records have at most" in warning
    assert "`max_seq_length` is 256. Records with `max_seq_length=128`" in warning


def test_texts_that_share_runs_of_words_are_named(tmp_path, tiny_corpus):
    halves = tiny_corpus[:60], tiny_corpus[60:120], tiny_corpus[120:180]
    for name, sentences in (("a", halves[0] + halves[1]), ("b", halves[1] + halves[2])):
        (tmp_path / f"{name}.txt").write_text(" ".join(sentences))
    (tmp_path / "dev.txt").write_text(" ".join(halves[2]).upper())
    report = check_corpus([tmp_path / "[ab].txt"], heldout=[tmp_path / "dev.txt"])
    leak, pair = report.near_duplicates
    assert (leak.name, leak.other, leak.held_out) == ("dev.txt (held out)", "b.txt", True)
    assert leak.share > 0.9
    assert (pair.name, pair.other, pair.held_out) == ("b.txt", "a.txt", False)
    assert pair.share == pytest.approx(0.5, abs=0.2)


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
    assert (leak.held_out, leak.other) == (True, "a.txt")


def test_a_leak_from_many_texts_is_added_up(tmp_path, tiny_corpus):
    for number in range(10):
        sentences = tiny_corpus[number * 10 : number * 10 + 10]
        (tmp_path / f"{number}.txt").write_text(" ".join(sentences))
    (tmp_path / "dev").write_text(" ".join(tiny_corpus[:300]))
    report = check_corpus([tmp_path / "*.txt"], heldout=[tmp_path / "dev"])
    assert report.held_out_share == pytest.approx(1 / 3, abs=0.08)
    leaks = [pair.share for pair in report.near_duplicates if pair.held_out]
    assert leaks == [report.held_out_share]
    assert check_corpus([tmp_path / "*.txt"]).held_out_share is None


def test_a_text_that_repeats_itself_is_named(tmp_path, tiny_corpus):
    (tmp_path / "a.txt").write_text("\n\n".join([*tiny_corpus[:60], *tiny_corpus[20:60]]))
    [pair] = check_corpus([tmp_path]).near_duplicates
    assert (pair.name, pair.other, pair.held_out) == ("a.txt", "a.txt", False)
    assert pair.share == pytest.approx(0.4, abs=0.1)


def test_examples_of_markup_are_of_several_files(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text("\n\n".join(f"<p>{n}</p>" for n in range(9)))
    [(is_good, name, text)] = check_corpus([tmp_path]).signs
    assert (is_good, name) == (False, "markup") and text.startswith(
        "100.0 % of the paragraphs (27)"
    )
    assert text.endswith("; a.txt: `<p>0</p>`; b.txt: `<p>0</p>`; c.txt: `<p>0</p>`")


SENTENCES = ["The old ferry left.", "Nobody wondered why it was late!", "“Was it?”", "So."]
WRAPPED = "the old ferry left the harbour and nobody wondered why it was late that day " * 40
#: Blocks of lines, and whether each line is a sentence.
BLOCKS = [
    (["\n".join(SENTENCES[n % 2 :]) for n in range(8)], True),
    (["渡船很早就离开了港口。\n没有人知道为什么。\n后来呢？"] * 6, True),
    (["\n".join(WRAPPED[n : n + 9 + n % 31] for n in range(6))] * 6, True),
    ([textwrap.fill(WRAPPED[: 900 + n], 72) for n in range(6)], False),
    ([textwrap.fill("It left. Nobody knew. " * 20, 60)] * 6, False),
    (["\n".join(SENTENCES * 9)], False),  # one text
    (SENTENCES * 9, False),  # paragraphs
    (["\n".join(f"{one} {one}" for one in SENTENCES)] * 6, False),
    (["O ferry, old ferry,\nthat left,\nso late."] * 6, False),
]


@pytest.mark.parametrize("blocks, is_so", BLOCKS)
def test_a_sentence_per_line_is_told_from_wrapped_lines(blocks, is_so, warnings_of, tmp_path):
    found = [one for one in warnings_of("\n\n".join(blocks), 1) if "sentence per line" in one]
    assert bool(found) == is_so
    report = check_corpus([tmp_path / "0.txt"])
    assert report.sentence_files == ([str(tmp_path / "0.txt")] if is_so else [])
    assert not check_corpus([tmp_path / "0.txt"], corpus_format="sentences").sentence_files


@pytest.mark.parametrize(
    "blocks, is_so",
    [
        (["后来呢有人问起那艘旧渡船\n没有人知道\n渡船很早就离开了港口"] * 6, True),
        (["ครูไปตลาดตอนเช้ากับเพื่อน\nน้ำเย็นมาก\nแมวเห็นแม่น้ำวันนี้"] * 6, True),
        (["ကလေးက စာဖတ်သည်။\nမိုးရွာသည်။\nသူပြန်လာသည်။"] * 6, True),
        ([textwrap.fill("渡船很早就离开了港口没有人知道" * (9 + n), 30) for n in range(6)], False),
        (["x = 1\ny = 2\nfor ferry in harbour(x, y):\n    print(ferry)\nz = 3"] * 9, False),
        (["cd harbour\nls\nfor ferry in $OLD $NEW; do\n  cp $ferry out\ndone"] * 9, False),
    ],
)
def test_scripts_without_spaces_have_sentence_lines_and_source_code_has_none(
    blocks, is_so, tmp_path
):
    (tmp_path / "x.txt").write_text("\n\n".join(blocks), encoding="utf-8")
    assert has_sentence_lines(tmp_path / "x.txt") == is_so
