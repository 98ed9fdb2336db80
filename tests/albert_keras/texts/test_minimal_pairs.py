"""Files of minimal pairs: both formats, folders, and lines that cannot be used."""

import json

import pytest

from albert_keras.texts.minimal_pairs import MinimalPair, pair_files, read_pairs
from data_pipeline.errors import InputError

BLIMP = {
    "sentence_good": "The cats sleep.",
    "sentence_bad": "The cats sleeps.",
    "UID": "agreement",
    "field": "morphology",
    "linguistics_term": "subject_verb_agreement",
    "pairID": "7",
}


def written(path, *rows):
    path.write_text(
        "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)
    )
    return path


def test_blimp_and_plain_keys_are_read(tmp_path):
    plain = {"good": "a b", "bad": "b a"}
    path = written(tmp_path / "mine.jsonl", BLIMP, "", plain | {"group": "order"}, plain)
    agreement = ("agreement", "morphology", "subject_verb_agreement")
    assert read_pairs([path]) == [
        MinimalPair("The cats sleep.", "The cats sleeps.", *agreement, str(path), 1),
        MinimalPair("a b", "b a", "order", None, None, str(path), 3),
        MinimalPair("a b", "b a", "mine", None, None, str(path), 4),
    ]


def test_a_folder_means_its_files_in_order(tmp_path):
    for name in ("b.jsonl", "a.jsonl", "notes.txt"):
        written(tmp_path / name, BLIMP)
    assert [path.name for path in pair_files([tmp_path])] == ["a.jsonl", "b.jsonl"]
    with pytest.raises(InputError, match="at least one file"):
        pair_files([])


def test_files_of_the_same_name_have_groups_of_their_own(tmp_path):
    plain = {"good": "a b", "bad": "b a"}
    files = [tmp_path / folder / "agreement.jsonl" for folder in ("en", "de")]
    for file in files:
        file.parent.mkdir()
        written(file, plain, plain | {"group": "order"})
    other = written(tmp_path / "order.jsonl", plain)
    groups = [pair.group for pair in read_pairs([*files, other])]
    assert groups == [str(files[0]), "order", str(files[1]), "order", "order"]


@pytest.mark.parametrize(
    "row, message",
    [
        ("{", r"line 2 must be a JSON object. Received: {"),
        ({"text": "a"}, "line 2 must have the keys `sentence_good` .* Received: text"),
        ({"good": "a"}, "line 2 `bad` must be a text. Received: None"),
        (BLIMP | {"UID": 3}, "line 2 `UID` must be a text"),
    ],
)
def test_a_line_that_cannot_be_used_is_named(tmp_path, row, message):
    path = written(tmp_path / "pairs.jsonl", BLIMP, row)
    with pytest.raises(InputError, match=f"pairs.jsonl` {message}"):
        read_pairs([path])


def test_all_of_blimp_is_read(shared_data):
    folder = shared_data / "blimp"
    if not folder.is_dir():
        pytest.skip("no BLiMP")
    pairs = read_pairs(pair_files([folder]))
    assert (len(pairs), len({pair.group for pair in pairs})) == (13_400, 67)
    assert all(pair.field and pair.term for pair in pairs)
