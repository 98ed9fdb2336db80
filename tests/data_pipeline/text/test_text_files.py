"""A file read range by range gives what the whole file gives."""

import itertools
import json
import random

import pytest

from data_pipeline.errors import InputError
from data_pipeline.text import text_files
from data_pipeline.text.corpus import corpus_ranges, read_corpus, read_range

FORMATS = ("prose", "sentences", "paragraphs", "documents", "jsonl", "wikiextractor")
WORDS = ("a", "word", "Grüße", "天下", "😀", "x" * 130, "<doc", "<doc is>", "</d", "\u3000")


@pytest.fixture
def cut_at(monkeypatch):
    """Returns a function that makes ranges small."""
    return lambda size: monkeypatch.setattr(text_files, "RANGE_BYTES", size)


def some_text(rng):
    """Makes a few lines, some blank in one way or another."""
    blank = ("", "", "  ", "\t", "\ufeff", "\u3000 ")
    lines = []
    for _ in range(rng.randrange(1, 9)):
        words = rng.choices(WORDS, k=rng.randrange(1, 9))
        lines.append(rng.choice(blank) if rng.random() < 0.3 else " ".join(words))
    return lines


def some_lines(format, rng):
    """Makes the lines of a file of a format."""
    lines = []
    for number in range(rng.randrange(1, 15)):
        text = some_text(rng)
        if format == "jsonl":
            label = {"id": f"id {number}"} if rng.random() < 0.5 else {}
            text = [json.dumps(label | {"text": "\n".join(text)}, ensure_ascii=False)]
        elif format == "wikiextractor":
            text = [line.replace("<doc is>", "<doc is").replace("</d", "< /d") for line in text]
            title = rng.choice(("A > B", "", "t"))
            head = f'<doc id="{number}" title="{title}">'
            line = text[0].replace("<doc", "< doc")
            text = [f"{head}x{line}</doc>"] if rng.random() < 0.3 else [head, *text, "</doc>"]
        lines += text + [""] * (rng.random() < 0.3)
    return lines


def some_bytes(format, seed):
    rng = random.Random(seed)
    end, mark = rng.choice((b"\n", b"\n", b"\r\n", b"\r")), rng.choice((b"", b"\xef\xbb\xbf"))
    lines = [line.encode() for line in some_lines(format, rng)]
    return mark + end.join(lines) + rng.choice((b"", end))


def contents(documents, format):
    """Returns what no cut may change: for prose the paragraphs, as parts end at cuts."""
    texts = [document.paragraphs for document in documents]
    return list(itertools.chain.from_iterable(texts)) if format == "prose" else texts


@pytest.mark.parametrize("format", FORMATS)
def test_all_ranges_together_are_the_whole(tmp_path, cut_at, format):
    path, cuts = tmp_path / "x", 0
    for seed in range(10):
        path.write_bytes(some_bytes(format, seed))
        cut_at(1 << 30)
        whole = contents(_read(path, format), format)
        for size in (4, 20, 64, 150, 400):
            cut_at(size)
            ranges = corpus_ranges([path], format)
            parts = [document for part in ranges for document in read_range(part)]
            assert contents(parts, format) == whole, (seed, size)
            assert parts == _read(path, format)
            _check_edges(ranges, path.read_bytes(), size)
            cuts += len(ranges) - 1
    assert cuts > 100


def _read(path, format):
    try:
        return list(read_corpus([path], format))
    except InputError as error:
        assert "empty" in str(error)
        return []


def _check_edges(ranges, data, size):
    """Every byte lies in one range, and a cut is the first place behind its own multiple."""
    edges = [part.begin for part in ranges] + [ranges[-1].end]
    assert edges == sorted({*edges}) or data == b""
    assert [part.end for part in ranges] == edges[1:]
    assert (edges[0], edges[-1]) == (0, len(data))
    assert all(data[edge - 1 : edge] == b"\n" for edge in edges[1:-1])
    multiples = [edge // size for edge in edges[1:-1]]
    assert multiples == sorted({*multiples} - {0})
