"""Byte-level BPE as transformers stores it: the same ids in both directions."""

import json

import pytest
import tokenizers

from albert_keras.formats.foreign_vocabulary import tokenizer_of
from albert_keras.formats.vocabulary import load_tokenizer
from albert_keras.formats.vocabulary_writing import files_for
from albert_keras.models.preprocessor import AlbertPreprocessor
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.byte_bpe import read_bpe, write_bpe
from data_pipeline.tokenizers.library_training import train_byte_bpe


@pytest.fixture(scope="module")
def tokenizer(tiny_corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bpe") / "own"
    return load_tokenizer(train_byte_bpe(tiny_corpus, folder, 400).path)


@pytest.fixture
def files(tokenizer):
    """Returns the files for Hugging Face; tests change them."""
    return files_for(tokenizer, "hugging-face", 64, has_segments=False)


def template_of(separators):
    """Returns the step that puts a number of separators between the texts of a pair."""
    sep = {"SpecialToken": {"id": "</s>", "type_id": 0}}
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    special = {"</s>": {"id": "</s>", "ids": [3], "tokens": ["</s>"]}}
    pair = [first, *[sep] * separators, second, sep]
    step = {"type": "TemplateProcessing", "single": [first, sep], "pair": pair}
    return step | {"special_tokens": special}


def changed(files, name, **values):
    """Returns files with other values in one of JSON."""
    return files | {name: json.dumps(json.loads(files[name]) | values).encode()}


def test_all_files_are_written_and_each_gives_the_same_tokenizer(tokenizer, files):
    assert files.keys() == {"tokenizer.json", "tokenizer_config.json"}
    assert tokenizer_of(files, "x").digest == tokenizer.digest
    alone = {"tokenizer.json": files["tokenizer.json"]}
    assert tokenizer_of(alone, "x").digest == tokenizer.digest


def test_a_prefix_is_a_setting_of_the_files(tokenizer):
    """The released RoBERTa has none."""
    content = read_bpe(tokenizer.model_bytes)._replace(add_prefix_space=False)
    without = tokenizer_of({"tokenizer.json": write_bpe(content)}, "x")
    assert without.digest != tokenizer.digest
    for one in (tokenizer, without):
        found = tokenizer_of(files_for(one, "hugging-face", 64), "x")
        assert (found.digest, found.encode("The")) == (one.digest, one.encode("The"))


def test_pairs_have_the_separators_of_the_file(tokenizer, files):
    with_one = changed(files, "tokenizer.json", post_processor=template_of(1))
    for one, separators in ((tokenizer, 2), (tokenizer_of(with_one, "x"), 1)):
        written = files_for(one, "hugging-face", 64, has_segments=False)
        assert one.pair_separators == separators
        reference = tokenizers.Tokenizer.from_str(written["tokenizer.json"].decode())
        pair = reference.encode("a", "b")
        ours = AlbertPreprocessor(one, 16)((["a"], ["b"]))
        assert pair.ids == ours["input_ids"][0][ours["input_mask"][0] > 0].numpy().tolist()
        assert pair.ids.count(one.sep_id) == separators + 1
        assert set(pair.type_ids) == {0}
        assert tokenizer_of(written, "x").digest == one.digest


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
    changes = changed(files, "tokenizer.json", post_processor=step)
    assert read_bpe(changes["tokenizer.json"]).pair_separators == separators


@pytest.mark.parametrize(
    "change, message",
    [
        (
            lambda f: changed(f, "tokenizer_config.json", add_prefix_space=False),
            "must agree. Received: `add_prefix_space` True in the first, False in",
        ),
        (
            lambda f: changed(f, "tokenizer.json", added_tokens=[{"content": "<x>", "id": 9}]),
            "no added tokens. Received: <x>",
        ),
        (
            lambda f: changed(f, "tokenizer.json", post_processor=template_of(3)),
            "3 special tokens between the texts",
        ),
    ],
)
def test_what_cannot_be_expressed_or_is_damaged_is_named(files, change, message):
    with pytest.raises(InputError, match=message):
        tokenizer_of(change(files), "x")
