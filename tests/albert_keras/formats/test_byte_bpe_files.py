"""Byte-level BPE as transformers stores it: the same ids in both directions."""

import json

import pytest
import tokenizers

from albert_keras.formats.vocabulary import read_vocabulary, vocabulary_of
from albert_keras.formats.vocabulary_writing import files_for
from albert_keras.models.preprocessor import AlbertPreprocessor
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.byte_bpe import read_bpe, write_bpe
from data_pipeline.tokenizers.library_training import train_byte_bpe


@pytest.fixture(scope="module")
def vocabulary(tiny_corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bpe") / "own"
    return read_vocabulary(train_byte_bpe(tiny_corpus, folder, 400).path)


@pytest.fixture(scope="module")
def without_prefix(vocabulary):
    """Returns the same vocabulary with the setting of the released RoBERTa."""
    content = read_bpe(vocabulary.tokenizer.model_bytes)
    file = write_bpe(content._replace(add_prefix_space=False))
    return vocabulary_of({"tokenizer.json": file}, "a test")


@pytest.fixture
def files(vocabulary):
    """Returns the files for Hugging Face; tests change them."""
    return files_for(vocabulary, "hugging-face", 64, has_segments=False)


def template_of(separators):
    """Returns the step that puts a number of separators between the texts of a pair."""
    sep = {"SpecialToken": {"id": "</s>", "type_id": 0}}
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    return {"type": "TemplateProcessing", "pair": [first, *[sep] * separators, second, sep]}


def changed(files, name, **values):
    """Returns files with other values in one of JSON."""
    return files | {name: json.dumps(json.loads(files[name]) | values).encode()}


def test_all_files_are_written_and_each_gives_the_same_tokenizer(vocabulary, files):
    assert files.keys() == {"tokenizer.json", "tokenizer_config.json"}
    digest = vocabulary.tokenizer.digest
    assert vocabulary_of(files, "x").tokenizer.digest == digest
    assert vocabulary_of(without_json(files), "x").tokenizer.digest == digest
    alone = {"tokenizer.json": files["tokenizer.json"]}
    assert vocabulary_of(alone, "x").tokenizer.digest == digest
    # More files of earlier versions of transformers do not matter.
    names = {"cls_token": "<s>", "mask_token": {"content": "<mask>", "lstrip": True}}
    more = {"special_tokens_map.json": json.dumps(names).encode(), "added_tokens.json": b"{}"}
    assert vocabulary_of(files | more, "x").tokenizer.digest == digest


def test_a_prefix_is_a_setting_of_the_files(vocabulary, without_prefix):
    for one in (vocabulary, without_prefix):
        files = without_json(files_for(one, "hugging-face", 64))
        assert vocabulary_of(files, "x").tokenizer.encode("The") == one.tokenizer.encode("The")
    del files["tokenizer_config.json"]  # as GPT-2, transformers adds none unless it is told to
    assert vocabulary_of(files, "x").tokenizer.digest == without_prefix.tokenizer.digest
    assert vocabulary.tokenizer.digest != without_prefix.tokenizer.digest


def test_pairs_have_the_separators_of_the_file(vocabulary, files):
    with_one = changed(files, "tokenizer.json", post_processor=template_of(1))
    for one, separators in ((vocabulary, 2), (vocabulary_of(with_one, "x"), 1)):
        tokenizer, written = one.tokenizer, files_for(one, "hugging-face", 64, has_segments=False)
        assert tokenizer.pair_separators == separators
        reference = tokenizers.Tokenizer.from_str(written["tokenizer.json"].decode())
        pair = reference.encode("a", "b")
        ours = AlbertPreprocessor(tokenizer, 16)((["a"], ["b"]))
        assert pair.ids == ours["input_ids"][0][ours["input_mask"][0] > 0].numpy().tolist()
        assert pair.ids.count(tokenizer.sep_id) == separators + 1
        assert set(pair.type_ids) == {0}
        assert vocabulary_of(written, "x").tokenizer.digest == tokenizer.digest


@pytest.mark.parametrize(
    "step, separators",
    [
        ({"type": "BertProcessing"}, 1),
        ({"type": "RobertaProcessing"}, 2),
        ({"type": "ByteLevel"}, 2),
        (None, 2),
        ({"type": "Sequence", "processors": [{"type": "ByteLevel"}, template_of(1)]}, 1),
        (template_of(2), 2),
    ],
)
def test_the_step_after_tokenization_decides_how_pairs_are_joined(files, step, separators):
    found = vocabulary_of(changed(files, "tokenizer.json", post_processor=step), "x").tokenizer
    assert found.pair_separators == separators


@pytest.mark.parametrize(
    "change, message",
    [
        (lambda f: changed(f, "tokenizer_config.json", cls_token="[CLS]"), "`cls_token` in tok"),
        (lambda f: f | {"special_tokens_map.json": b'{"pad_token": "<s>"}'}, "`pad_token` in spec"),
        (
            lambda f: changed(f, "tokenizer.json", added_tokens=[{"content": "<x>", "id": 9}]),
            "no added tokens. Received: <x>",
        ),
        (
            lambda f: changed(f, "tokenizer.json", post_processor=template_of(3)),
            "3 special tokens between the texts",
        ),
        (lambda f: without_json(f) | {"vocab.json": b'{"a": 0}'}, "special tokens must be among"),
        (lambda f: without_json(f) | {"vocab.json": b'{"a": 7}'}, "numbered from 0"),
        (lambda f: with_half_a_character(f), r"must be text, .*'\\ud800'"),
        (
            lambda f: without_json(f) | {"merges.txt": b"#version: 0.2\n\na b c\n"},
            "must be two pieces .*Received in line 3: 'a b c'",
        ),
    ],
)
def test_what_cannot_be_expressed_or_is_damaged_is_named(files, change, message):
    with pytest.raises(InputError, match=message):
        vocabulary_of(change(files), "x")


def with_half_a_character(files):
    files = without_json(files)
    ids = json.loads(files["vocab.json"])
    return files | {"vocab.json": json.dumps(ids | {"\ud800": len(ids)}).encode()}


def without_json(files):
    """Returns the files as earlier versions of transformers write them."""
    model = json.loads(files["tokenizer.json"])["model"]
    merges = "".join(f"{' '.join(merge)}\n" for merge in model["merges"])
    return {
        "tokenizer_config.json": files["tokenizer_config.json"],
        "vocab.json": json.dumps(model["vocab"]).encode(),
        "merges.txt": f"#version: 0.2\n{merges}".encode(),
    }


@pytest.mark.parametrize(
    "change",
    [
        lambda merges: merges.replace(b"\n", b"\n\n", 2),
        lambda merges: merges + b"\n",
        lambda merges: merges.replace(b"\n", b"\r\n"),
        lambda merges: b"\xef\xbb\xbf" + merges,
    ],
    ids=["blank", "blank at the end", "CR", "BOM"],
)
def test_line_ends_and_blank_lines_of_merges_change_nothing(files, change):
    plain = without_json(files)
    expected = vocabulary_of(plain, "x").tokenizer.digest
    changed = plain | {"merges.txt": change(plain["merges.txt"])}
    assert vocabulary_of(changed, "x").tokenizer.digest == expected
