"""A `tokenizer.json` becomes the file it was made from, or what differs is named and refused."""

import base64
import copy
import json

import pytest
import tensorflow as tf
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from albert_keras.formats.foreign_vocabulary import tokenizer_of
from albert_keras.formats.tokenizer_check import check_ids
from albert_keras.formats.tokenizer_json import read_tokenizer_json
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.graph_tokenization import graph_tokenizer
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_files import read_model

TEXTS = (
    "The old ferry left (before sunrise) at 9.",
    'She said: "try again" - for £25 or €30.',
    "Ünïcode Café ﬁne ½ ＡＢＣ   two  spaces",
)


def token(id, content, special, **others):
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return {"id": id, "content": content, "special": special} | plain | others


@pytest.fixture(scope="module")
def albert(official_model):
    """Returns what transformers makes of the official vocabulary, as a dict."""
    model = official_model.read_bytes()
    vocab = [[piece.piece, piece.score] for piece in read_model(model).pieces]
    charsmap = base64.b64encode(
        ModelProto.FromString(model).normalizer_spec.precompiled_charsmap
    ).decode()
    normalizers = [
        {"type": "Replace", "pattern": {"String": "``"}, "content": '"'},
        {"type": "Replace", "pattern": {"String": "''"}, "content": '"'},
        {"type": "NFKD"},
        {"type": "StripAccents"},
        {"type": "Lowercase"},
        {"type": "Precompiled", "precompiled_charsmap": charsmap},
        {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "},
    ]
    metaspace = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}
    return {
        "added_tokens": [token(id, vocab[id][0], True) for id in range(5)],
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace],
        },
        "model": {"type": "Unigram", "unk_id": 1, "vocab": vocab},
    }


@pytest.fixture(scope="module")
def short(albert):
    """Returns the same with 20 pieces."""
    return albert | {"model": albert["model"] | {"vocab": albert["model"]["vocab"][:20]}}


@pytest.fixture(scope="module")
def bert(word_pieces):
    """Returns what transformers makes of a `vocab.txt`, as a dict."""
    ids = {piece: id for id, piece in enumerate(word_pieces.decode().split())}
    normalizer = {"clean_text": True, "handle_chinese_chars": True, "strip_accents": None}
    return {
        "added_tokens": [token(id, piece, True) for piece, id in list(ids.items())[:5]],
        "normalizer": {"type": "BertNormalizer", "lowercase": False} | normalizer,
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "model": {"type": "WordPiece", "continuing_subword_prefix": "##", "vocab": ids},
    }


def read(values):
    return read_tokenizer_json(json.dumps(values).encode())


def test_the_rebuilt_model_gives_the_same_ids(albert, official_model, tmp_path):
    found = read(albert)
    assert found[2:4] == (True, True)
    (tmp_path / found.file_name).write_bytes(found.content)
    rebuilt, official = Tokenizer.load(tmp_path / "spiece.model"), Tokenizer.load(official_model)
    for text in TEXTS:
        assert rebuilt.encode(text) == official.encode(text)
    pieces = (read_model(model.model_bytes).pieces for model in (rebuilt, official))
    for one, other in zip(*pieces, strict=True):
        assert (one.piece, one.score, one.type) == (other.piece, other.score, other.type or 1)
    check_ids(rebuilt, json.dumps(albert).encode(), "a folder")


def test_symbols_that_cut_text_apart_are_refused(albert):
    """With ALBERT's own symbols as added tokens, their program puts a space after each."""
    pytest.importorskip("tokenizers")
    vocab = albert["model"]["vocab"]
    symbols = [token(id, vocab[id][0], False) for id in range(len(vocab)) if vocab[id][0] in "(-)"]
    files = {"tokenizer.json": json.dumps(albert).encode()}
    assert tokenizer_of(files, "x").encode("(a)") == [13, 5, 58, 6]
    changed = albert | {"added_tokens": albert["added_tokens"] + symbols}
    with pytest.raises(InputError, match="same ids here .* such as the file that it was made from"):
        tokenizer_of({"tokenizer.json": json.dumps(changed).encode()}, "x")


def test_a_cased_file_that_keeps_accents(short):
    cased = copy.deepcopy(short)
    cased["normalizer"]["normalizers"] = cased["normalizer"]["normalizers"][5:]
    assert read(cased)[2:4] == (False, False)


def test_word_pieces_become_a_list(bert, word_pieces):
    assert read(bert) == ("vocab.txt", word_pieces, False, False, 100)


GREEK = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"abοσς", *(f"##{one}" for one in "abοσς"))
LIMITS = [f"{'a' * 7} {'a' * 8} {'b' * 100} {'b' * 101} {'ab' * 100} {'b' * 201}"]
LIMITS += ["ΟΣ ΟΣΟ", "Σ", "οσ ος", "a\ue000b", "a\U000f1234 b"]


@pytest.mark.parametrize("longest", [7, 100, None])
def test_the_limits_of_the_program_of_word_pieces_are_taken_over(longest):
    """The ids are those of the library tokenizers; a list has its usual limit."""
    tokenizers = pytest.importorskip("tokenizers")
    ids = {piece: id for id, piece in enumerate(GREEK)}
    limit = {} if longest is None else {"max_input_chars_per_word": longest}
    theirs = tokenizers.Tokenizer(tokenizers.models.WordPiece(ids, unk_token="[UNK]", **limit))
    theirs.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    files = [{"tokenizer.json": theirs.to_str().encode()}]
    if longest != 7:
        settings = b'{"do_lower_case": true}'
        files += [{"vocab.txt": "\n".join(GREEK).encode(), "tokenizer_config.json": settings}]
    for found in (tokenizer_of(each, "x") for each in files):
        for text in LIMITS:
            assert found.encode(text) == theirs.encode(text, add_special_tokens=False).ids
        assert graph_tokenizer(found)(tf.constant(LIMITS)).to_list() == [*map(found.encode, LIMITS)]


@pytest.mark.parametrize("id", [-1, 20, None, "1"])
def test_the_unknown_piece_must_be_in_the_vocabulary(short, id):
    changed = short | {"model": short["model"] | {"unk_id": id}}
    with pytest.raises(InputError, match=f"`model.unk_id` .* from 0 to 19. Received: {id!r}"):
        read(changed)


@pytest.mark.parametrize(
    "place, value, named",
    [
        (("pre_tokenizer",), {"type": "ByteLevel"}, "`pre_tokenizer` .* ByteLevel"),
        (("pre_tokenizer", "pretokenizers", 1, "prepend_scheme"), "never", "`pre_tokenizer`"),
        (("normalizer", "normalizers", 2), {"type": "NFD"}, "`normalizer` .* NFD"),
        (("normalizer", "normalizers", 2), {"type": "Lowercase"}, "StripAccents alone"),
        (("normalizer", "normalizers", 0, "content"), "'", "Replace .*``"),
        (("added_tokens", 4), token(30_000, "<extra>", False), "`added_tokens` .*<extra>"),
        (("added_tokens", 4), token(5, "(", False, lstrip=True), "includes the spaces around it"),
        (("model", "byte_fallback"), True, "byte_fallback"),
        (("model", "type"), "BPE", "Unigram or WordPiece. Received: BPE"),
        (("model", "vocab"), "none", "is not the tokenizer of an ALBERT or BERT"),
    ],
)
def test_what_cannot_be_expressed_is_named(short, place, value, named):
    changed = copy.deepcopy(short)
    *way, last = place
    part = changed
    for key in way:
        part = part[key]
    part[last] = value
    with pytest.raises(InputError, match=named):
        read(changed)


@pytest.mark.parametrize(
    "part, key, value",
    [
        ("normalizer", "handle_chinese_chars", False),
        ("pre_tokenizer", "type", "Whitespace"),
        ("model", "continuing_subword_prefix", "@@"),
    ],
)
def test_what_our_word_pieces_do_not_do_is_named(bert, part, key, value):
    changed = bert | {part: bert[part] | {key: value}}
    with pytest.raises(InputError, match=f"`{part}.*cannot be expressed here. Received: {value}"):
        read(changed)


def test_damaged_rules_of_the_normalizer_are_refused(short):
    pytest.importorskip("tokenizers")
    damaged = copy.deepcopy(short)
    rules = damaged["normalizer"]["normalizers"][5]
    charsmap = base64.b64decode(rules["precompiled_charsmap"])[:-3] + b"\xff\xfe\x00"  # no UTF-8
    rules["precompiled_charsmap"] = base64.b64encode(charsmap).decode()
    files = {"tokenizer.json": json.dumps(damaged).encode()}
    with pytest.raises(InputError, match="tokenizer.json of `x` is damaged"):
        tokenizer_of(files, "x")
