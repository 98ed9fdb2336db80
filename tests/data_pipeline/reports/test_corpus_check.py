"""A check finds what was planted in a corpus, and says what a build would make of it."""

import json
import re
import subprocess
import sys
from collections import Counter

import pytest

from data_pipeline.building.build import build_records
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from data_pipeline.reports.corpus_check import check_corpus
from data_pipeline.reports.corpus_preview import RecordPreview
from data_pipeline.reports.corpus_statistics import (
    _LANGUAGES_OF_SCRIPTS,
    Characters,
    Repeats,
    expected_scripts,
    quantiles,
)
from data_pipeline.text.corpus import read_corpus
from data_pipeline.text.sentences import LANGUAGES

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
        "empty_documents": 2,
        "one_sentence_documents": 1,
        "paragraphs": 4,
        "sentences": 4,
        "words": 8,
        "characters": 37,
        "pieces": sum(pieces),
        "unknown_pieces": 0,
        "long_sentences": 0,
    }
    assert report.unit == "pieces"
    assert report.sentence_lengths["max"] == max(pieces)
    assert report.document_lengths["max"] == max(sum(pieces[:3]), pieces[3])
    assert (report.files, report.bytes, report.share_read) == (1, path.stat().st_size, 1.0)
    assert (report.formats, report.problems) == ({"jsonl": 1}, [])


def test_without_a_tokenizer_lengths_are_characters_and_nothing_is_estimated(tmp_path):
    (tmp_path / "x.txt").write_text("One two. Three.")
    report = check_corpus([tmp_path])
    assert report.unit == "characters"
    assert report.sentence_lengths == {"5%": 6, "median": 6, "95%": 8, "max": 8}
    assert report.document_lengths["max"] == 14
    assert (report.estimate, report.examples, report.unknown_characters) == (None, [], [])
    assert "pieces" not in report.counts


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
    assert "Latin-1" in report.problems[1].reason and "UTF-16" in report.problems[2].reason
    assert (report.files_with_bom, report.files_with_crlf, report.files_without_text) == (1, 1, 1)
    assert report.counts["documents"] == 4  # one was made of bad.jsonl before the fault


def test_line_ends_are_seen_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("data_pipeline.reports.corpus_check._BLOCK", 4)
    (tmp_path / "cut.txt").write_bytes(b"One\r\nTwo")
    (tmp_path / "lone.txt").write_bytes(b"On\ne\rTwo")
    assert check_corpus([tmp_path]).files_with_crlf == 1


def test_repeated_documents_and_paragraphs_are_shares_of_the_text(tmp_path):
    texts = ["aaaa", "bbbb\ncccc", "aaaa", "dddd\ncccc", "aaaa"]
    report = check_corpus([write_lines(tmp_path / "x.jsonl", texts)])
    assert report.repeated_documents == 2
    assert report.repeated_text == pytest.approx(8 / 30)
    assert report.repeated_paragraphs_text == pytest.approx(12 / 28)


def test_nothing_repeats_in_nothing():
    assert Repeats().result() == (0, 0.0)


def test_truncated_sentences_are_those_with_no_room_in_a_record(tmp_path, tiny_tokenizer):
    sentence = "The old ferry left the harbour before sunrise."
    size = len(tiny_tokenizer.encode(sentence))
    path = write_lines(tmp_path / "x.jsonl", [f"{sentence} {sentence} No."] * 2)
    for room, truncated in ((size, 0), (size - 1, 4)):
        config = PretrainingDataConfig(max_seq_length=room + 3)
        assert check_corpus([path], tiny_tokenizer, config).counts["long_sentences"] == truncated


def test_unknown_characters_are_named_the_most_frequent_first(tmp_path, tiny_tokenizer):
    path = tmp_path / "x.txt"
    path.write_text("The 日 old 日本 ferry. A 本 日 left.", encoding="utf-8")
    report = check_corpus([path], tiny_tokenizer)
    assert report.unknown_characters == [("日", 3), ("本", 2)]
    ids = [
        id
        for text in ("The 日 old 日本 ferry.", "A 本 日 left.")
        for id in tiny_tokenizer.encode(text)
    ]
    assert report.counts["unknown_pieces"] == ids.count(tiny_tokenizer.unk_id) > 0


def test_names_of_special_pieces_are_counted(tmp_path):
    (tmp_path / "x.txt").write_text("A [MASK] and [MASK]. [CLS]<pad> [mask].")
    assert check_corpus([tmp_path]).literals == {"[MASK]": 2, "[CLS]": 1, "<pad>": 1}


def test_odd_characters_are_counted_by_kind(tmp_path):
    text = "a\u200bb\x07\ufffd\ufffd\xad. \ue000\u0378é\nc"
    (tmp_path / "x.txt").write_text(text, encoding="utf-8")
    assert check_corpus([tmp_path]).odd_characters == {
        "replacement": 2,
        "control": 1,
        "invisible": 2,
        "private": 1,
        "unassigned": 1,
    }


def test_characters_are_counted_over_many_texts(monkeypatch):
    monkeypatch.setattr("data_pipeline.reports.corpus_statistics._CHARACTERS_AT_ONCE", 3)
    characters = Characters()
    for text in ("ab", "a😀\na", "b"):
        characters.add(text)
    assert characters.most_common() == [("a", 3), ("b", 2), ("😀", 1)]


def test_letters_are_told_by_script():
    characters = Characters()
    characters.add("abéＡ 天下 ж 12 !?")
    assert characters.scripts() == {"Latin": 4 / 7, "Han": 2 / 7, "Cyrillic": 1 / 7}


def test_every_language_of_the_table_of_scripts_exists():
    listed = [row.split() for row in _LANGUAGES_OF_SCRIPTS.split(";")]
    assert {language for _, *languages in listed for language in languages} <= set(LANGUAGES)
    assert expected_scripts("de") == ("Latin",)
    assert expected_scripts("ja") == ("Han", "Hiragana", "Katakana")


def test_quantiles_are_lengths_that_occur():
    wanted = {"5%": 0.05, "median": 0.5, "95%": 0.95, "max": 1.0}
    hundred = Counter(range(1, 101))
    assert quantiles(hundred, wanted) == {"5%": 5, "median": 50, "95%": 95, "max": 100}
    assert quantiles(Counter({3: 1, 9: 1}), wanted)["median"] == 3
    assert set(quantiles(Counter(), wanted).values()) == {0}


def test_unspaced_writing_has_a_word_for_each_character(tmp_path):
    (tmp_path / "x.txt").write_text("天下 and 天.", encoding="utf-8")
    assert check_corpus([tmp_path]).counts["words"] == 5


def test_a_large_corpus_is_sampled_by_whole_files_and_its_share_told(books, tiny_tokenizer):
    size = sum(path.stat().st_size for path in books.iterdir())
    whole = check_corpus([books], tiny_tokenizer, SHORT)
    part = check_corpus([books], tiny_tokenizer, SHORT, sample_mb=0.25 * size / 1e6)
    assert (whole.share_read, part.share_read) == (1.0, pytest.approx(0.3))
    assert (whole.counts["documents"], part.counts["documents"]) == (30, 9)
    assert (part.files, part.bytes) == (10, size)
    assert part.estimate.records == pytest.approx(whole.estimate.records, rel=0.1)
    assert part.estimate.bytes == pytest.approx(whole.estimate.bytes, rel=0.1)


def test_the_seed_decides_the_sample(tmp_path):
    for number in range(20):
        (tmp_path / f"{number}.txt").write_text("a" * (100 + number))

    def sampled(seed):
        config = PretrainingDataConfig(seed=seed)
        return check_corpus([tmp_path], config=config, sample_mb=1e-6).counts["characters"]

    assert sampled(0) == sampled(0)
    assert len({sampled(seed) for seed in range(8)}) > 3


@pytest.mark.parametrize("input_format", ["segment-pair", "doc-sentences"])
def test_the_estimate_is_what_the_build_makes(books, tmp_path, tiny_tokenizer, input_format):
    config = PretrainingDataConfig(
        max_seq_length=32, short_seq_prob=0, copies=2, num_shards=3, input_format=input_format
    )
    estimate = check_corpus([books], tiny_tokenizer, config, workers=2).estimate
    info = build_records([books], tiny_tokenizer, tmp_path / "records", config).info
    files = [path for path in (tmp_path / "records").iterdir() if path.name.startswith("pretrain")]
    assert estimate.records == info.num_records
    assert estimate.shards == len(info.shards) == 3
    assert estimate.bytes == pytest.approx(sum(path.stat().st_size for path in files), rel=0.02)
    assert estimate.workers == 2 and estimate.seconds > 0


def test_time_is_divided_among_workers_and_grows_with_copies(tiny_tokenizer):
    def seconds(share, workers, copies=1):
        config = PretrainingDataConfig(copies=copies)
        preview = RecordPreview(tiny_tokenizer, config)
        ids, lengths = tiny_tokenizer.encode_sentences(["The old ferry."] * 100)
        preview.add(ids, lengths)
        return preview.estimate(share, 2.0, workers).seconds, len(ids)

    total, pieces = seconds(1.0, 1)
    assert total == pytest.approx(2 + pieces * 2e-7)
    assert seconds(0.5, 4)[0] == pytest.approx(total / 2)
    assert seconds(1.0, 1, copies=3)[0] == pytest.approx(2 + 3 * pieces * 2e-7)


def test_examples_show_masks_and_are_the_text_once_restored(books, tiny_corpus, tiny_tokenizer):
    examples = check_corpus([books], tiny_tokenizer, SHORT).examples
    assert len(examples) == 3
    assert {example.order for example in examples} <= {"in order", "swapped"}
    text = tiny_tokenizer.decode(tiny_tokenizer.encode(" ".join(tiny_corpus)))
    shown = [segment for example in examples for segment in example.segments]
    assert len(shown) == 6 and any("[MASK→" in segment for segment in shown)
    for segment in shown:
        restored = re.sub(r"\[[^\[\]]+→([^\[\]]+)\]", r"\1", segment).replace("▁", "")
        assert restored in text


def test_a_single_segment_has_no_order(books, tiny_tokenizer):
    config = PretrainingDataConfig(max_seq_length=32, input_format="full-sentences")
    (example, *_) = check_corpus([books], tiny_tokenizer, config).examples
    assert example.order == "none" and len(example.segments) == 1


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


def test_the_lengths_are_drawn_and_nothing_else_is_written(tmp_path, books):
    before = sorted(tmp_path.rglob("*"))
    check_corpus([books], figure=tmp_path / "x.png")
    assert set(tmp_path.rglob("*")) - set(before) == {tmp_path / "x.png"}
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"sample_mb": 0}, "sample_mb=|`sample_mb`"),
        ({"corpus_format": "xml"}, "xml"),
        ({"figure": "x.jpg"}, "png"),
        ({"config": PretrainingDataConfig(language="xx")}, "language=xx"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_read(books, changes, says):
    with pytest.raises(InputError, match=says):
        check_corpus([books], **changes)


def test_a_missing_source_is_refused(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        check_corpus([tmp_path / "x.txt"])


def test_progress_is_told(books, monkeypatch, caplog):
    monkeypatch.setattr("data_pipeline.reports.corpus_check._SECONDS_BETWEEN_LINES", 0)
    with caplog.at_level("INFO", "data_pipeline"):
        check_corpus([books])
    assert re.search(r"checked \d+ of \d+ MB, \d+\.\d MB/s", caplog.text)


def test_tensorflow_is_not_loaded():
    code = "import data_pipeline.reports.corpus_check, sys; print('tensorflow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr


def test_each_dirty_file_is_refused_as_its_reader_does(shared_data):
    files = sorted(path for path in (shared_data / "dirty").rglob("*") if path.is_file())
    whole = check_corpus([shared_data / "dirty"], sample_mb=1000)
    reasons = {}
    for path in files:
        try:
            list(read_corpus([path]))
        except InputError as error:
            if "corpus is empty" not in str(error):
                reasons[str(path)] = str(error)
    assert dict(whole.problems) == reasons
    assert 0 < len(reasons) < whole.files == len(files)
    for path in files:
        alone = check_corpus([path])
        assert [problem.file for problem in alone.problems if problem.file] == (
            [str(path)] if str(path) in reasons else []
        )


@pytest.mark.parametrize("folder, language", [("books-de", "de"), ("books-zh", "zh")])
def test_real_books_give_sensible_numbers(shared_data, official_model, folder, language):
    from data_pipeline.tokenizers.tokenization import Tokenizer

    config = PretrainingDataConfig(language=language)
    source = shared_data / "corpus" / folder
    report = check_corpus([source], Tokenizer.load(official_model), config, sample_mb=1)
    assert not report.problems
    assert 0 < report.share_read <= 1
    counts, estimate = report.counts, report.estimate
    script = expected_scripts(language)[0]
    assert report.scripts[script] > 0.9
    assert counts["documents"] < counts["sentences"] < counts["words"] < counts["characters"]
    pieces = counts["pieces"] / report.share_read
    assert estimate.records == pytest.approx(pieces / 509, rel=0.1)
    assert len(report.examples) == 3
    unknown = counts["unknown_pieces"] / counts["pieces"]
    assert unknown > 0.3 if language == "zh" else unknown < 0.1
