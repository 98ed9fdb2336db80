"""A corpus is split by content and written whole."""

import pytest

from data_pipeline.errors import InputError
from data_pipeline.text.corpus import Document, read_corpus, split_heldout, write_jsonl


def test_what_is_written_is_read_back_as_the_same_texts(tmp_path):
    documents = [Document(f"d{n}", (f"Größe {n}.", '"Quoted" text.')) for n in range(3)]
    path = tmp_path / "new" / "corpus.jsonl"
    write_jsonl(documents, path)
    again = list(read_corpus([path]))
    assert [item.digest for item in again] == [item.digest for item in documents]
    assert again[0].name == f"corpus.jsonl:{documents[0].name}"


def test_a_broken_write_leaves_the_older_file_and_nothing_else(tmp_path):
    def broken():
        yield Document("a", ("Text.",))
        raise RuntimeError("no more")

    path = tmp_path / "corpus.jsonl"
    path.write_text("older")
    with pytest.raises(RuntimeError, match="no more"):
        write_jsonl(broken(), path)
    with pytest.raises(InputError, match="no document"):
        write_jsonl([], path)
    assert [item.name for item in tmp_path.iterdir()] == ["corpus.jsonl"]
    assert path.read_text() == "older"


def test_heldout_is_decided_by_the_text_and_not_by_the_order():
    documents = [Document("x", (f"Text {number}.",)) for number in range(2_000)]
    train, heldout = split_heldout(documents, fraction=0.05)
    assert 60 < len(heldout) < 140  # 100 expected, 10 the standard deviation
    assert len(train) + len(heldout) == 2_000
    backwards = split_heldout(documents[::-1], fraction=0.05)
    assert backwards == (train[::-1], heldout[::-1])
    fewer = split_heldout(documents[:1_000], fraction=0.05)[1]
    assert set(fewer) == set(heldout) & set(documents[:1_000])


@pytest.mark.parametrize("fraction", [0.001, 0.999])
def test_each_part_gets_a_document_however_few_there_are(fraction):
    train, heldout = split_heldout([Document("x", ("a",)), Document("y", ("b",))], fraction)
    assert len(train) == len(heldout) == 1


def test_a_heldout_part_needs_a_fraction_and_two_texts():
    same = [Document("x", ("a",)), Document("y", ("a",))]
    with pytest.raises(InputError, match="two different documents"):
        split_heldout(same)
    with pytest.raises(InputError, match="`fraction`.*Received: 0"):
        split_heldout(same, fraction=0)
