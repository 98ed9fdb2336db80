"""Ours into each other format and back: the same bits, the same shape, the same vocabulary."""

import json

import pytest

from albert_keras.conversion.convert import convert
from albert_keras.formats.detection import FORMATS, OURS
from albert_keras.formats.open_model import open_model
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.library_training import train_byte_bpe
from tests.albert_keras.conversion.conftest import SHAPE
from tests.albert_keras.formats import random_weights

BERT = SHAPE.replace(embedding_size=32, sharing="none", hidden_act="gelu_erf")
GROUPS = SHAPE.replace(num_hidden_layers=4, num_hidden_groups=2, inner_group_num=2)
EQUAL = SHAPE.replace(embedding_size=32)
DISTILBERT = SHAPE.replace(**random_weights.DISTILBERT | {"embedding_size": 32})
ROBERTA = SHAPE.replace(**random_weights.ROBERTA | {"embedding_size": 32})
#: Format, what is special, shape, heads, and those that have no place there.
BOTH = ("masked_lm", "sentence_order")
CASES = [
    ("google", "groups", GROUPS, BOTH, ()),
    ("google", "equal sizes", EQUAL, BOTH, ()),
    ("google", "classifier", SHAPE, ("classifier",), ()),
    ("google-bert", "bert", BERT, BOTH, ()),
    ("hugging-face", "groups", GROUPS, BOTH, ()),
    ("hugging-face", "equal sizes", EQUAL, BOTH, ()),
    ("hugging-face", "bert", BERT, BOTH, ()),
    ("hugging-face", "classifier", SHAPE, ("classifier",), ()),
    ("hugging-face", "encoder", SHAPE, (), ()),
    ("hugging-face", "distilbert", DISTILBERT, ("masked_lm",), ()),
    ("hugging-face", "roberta", ROBERTA, ("masked_lm",), ()),
    ("keras-nlp", "groups", GROUPS, BOTH, BOTH),
]


_PARAMETERS = [pytest.param(*case, id=f"{case[0]}, {case[1]}") for case in CASES]


@pytest.fixture(scope="module")
def byte_bpe_files(tiny_corpus, tmp_path_factory):
    """Returns the files of a tokenizer of RoBERTa with as many pieces as `SHAPE` has."""
    folder = tmp_path_factory.mktemp("bpe") / "own"
    path = train_byte_bpe(tiny_corpus, folder, SHAPE.vocab_size).path
    return {file.name: file.read_bytes() for file in path.iterdir()}


@pytest.mark.parametrize("name, special, config, heads, left", _PARAMETERS)
def test_there_and_back_is_the_same_model(
    name, special, config, heads, left, own_folder, byte_bpe_files, tmp_path
):
    source = own_folder(config, heads, files=byte_bpe_files if special == "roberta" else None)
    there = convert(source, tmp_path / "there", to=name)
    assert (there.left_heads, there.format) == (left, name)
    back = convert(tmp_path / "there", tmp_path / "back")
    assert back.source_format == name
    assert there.encoder_digest == back.encoder_digest
    origins = [open_model(source), open_model(tmp_path / "back")]
    first, second = (origin.weights() for origin in origins)
    assert second.heads == tuple(head for head in heads if head not in left)
    for tensor, array in second.tensors.items():
        assert array.tobytes() == first.tensors[tensor].tobytes(), tensor
    free = {"foreign_keys": {}, "initializer_range": 0.02}
    assert second.config.replace(**free) == first.config.replace(**free)
    assert len({origin.tokenizer.digest for origin in origins}) == 1


@pytest.mark.parametrize("name", ["google-bert", "hugging-face"])
def test_word_pieces_travel(name, own_folder, word_pieces, tmp_path):
    source = own_folder(BERT, files={"vocab.txt": word_pieces})
    for number, to in enumerate((None, name, None)):
        target = tmp_path / str(number)
        convert(source, target, to=to or OURS)
        source = target
    first, last = (open_model(tmp_path / number).tokenizer for number in "02")
    assert first.model_bytes == word_pieces and last.digest == first.digest


def test_the_positions_of_a_roberta_start_after_the_padding_of_its_vocabulary(own_folder, tmp_path):
    source = own_folder(ROBERTA, ("masked_lm",))  # a vocabulary whose padding is 0
    convert(source, tmp_path / "there", to="hugging-face")
    values = json.loads((tmp_path / "there" / "config.json").read_text())
    assert (values["pad_token_id"], values["max_position_embeddings"]) == (0, 25)


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - {OURS}))
def test_rotary_positions_have_no_place_in_other_formats(name, own_folder, tmp_path):
    source = own_folder(SHAPE.replace(position_embedding="rotary"))
    with pytest.raises(InputError, match='`position_embedding` must be "absolute"'):
        convert(source, tmp_path / "there", to=name)
    assert not (tmp_path / "there").exists()


def test_rotary_positions_stay_in_our_own_format(own_folder, tmp_path):
    source = own_folder(SHAPE.replace(position_embedding="rotary"), ("masked_lm",))
    convert(source, tmp_path / "there", to=OURS)
    assert open_model(tmp_path / "there").albert_config.position_embedding == "rotary"
