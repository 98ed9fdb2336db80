import json
import random

import pytest
import tensorflow as tf
import tokenizers

from albert_keras.cli import main
from data_pipeline.tokenizers.byte_bpe import SPECIAL_PIECES, read_bpe, write_bpe
from data_pipeline.tokenizers.graph_tokenization import graph_tokenizer
from data_pipeline.tokenizers.library_training import train_byte_bpe
from data_pipeline.tokenizers.tokenization import Tokenizer

_PARTS = (
    *("", " ", "  ", "\t", "\n", "\r\n", "\u3000", "\xa0", "\u2028", "\x85", "\x1c", "\x00"),
    *("'", "''", "'s", "'S", "'re", "'ll", "'ve", "I'm", "don't", "’s", "ʼ", "!", "...", "_"),
    *SPECIAL_PIECES,
    *("a", "Z", "aaaa", "www", "9", "½", "Ⅷ", "é", "e\u0301", "漢", "कि", "한", "ａ", "ﬁ", "Ġ"),
    *("\U0001f600", "\U0001f1e9\U0001f1ea", "\u200d", "\ufeff", "\u200b", "\ufffd", "\ue000"),
    *("\U000e0001", "\U0010ffff", "\u1c89", "\U00010d40"),  # the last two are of Unicode 16
)


def hostile_strings(count, seed=0):
    draw = random.Random(seed)
    for number in range(count):
        if number % 3:
            yield "".join(draw.choices(_PARTS, k=draw.randint(0, 25)))
        else:
            most = draw.choice((0x250, 0x3000, 0x110000))
            codes = (draw.randrange(most) for _ in range(draw.randint(1, 20)))
            yield "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)


@pytest.fixture(scope="module")
def vocabulary(tiny_corpus, tmp_path_factory):
    out = tmp_path_factory.mktemp("bpe") / "tiny"
    return train_byte_bpe([*tiny_corpus, "aaaa aaaaaa don't ½½ 漢字 漢字"] * 2, out, 600)


@pytest.fixture(scope="module")
def tokenizer(vocabulary):
    return Tokenizer.load(vocabulary.path)


@pytest.fixture(scope="module")
def without_prefix(tokenizer, tmp_path_factory):
    """Returns a tokenizer of the same pieces that adds no space, as RoBERTa's."""
    content = read_bpe(tokenizer.model_bytes)
    path = tmp_path_factory.mktemp("bare") / "tokenizer.json"
    path.write_bytes(write_bpe(content._replace(add_prefix_space=False)))
    return Tokenizer.load(path)


def reference_ids(tokenizer, texts):
    """Encodes with the file as the library reads it, without its special tokens."""
    values = json.loads(tokenizer.model_bytes)
    values |= {"added_tokens": [], "post_processor": None}
    reference = tokenizers.Tokenizer.from_str(json.dumps(values))
    return [one.ids for one in reference.encode_batch(texts)]


def assert_same_ids(tokenizer, texts):
    expected = reference_ids(tokenizer, texts)
    assert [ids.tolist() for ids in tokenizer.encode_batch(texts)] == expected
    specification = tf.TensorSpec([None], tf.string)
    graph = tf.function(graph_tokenizer(tokenizer).__call__, [specification], autograph=False)
    found = graph([text.encode() for text in texts]).to_list()
    triples = zip(texts, found, expected, strict=True)
    differing = [triple for triple in triples if triple[1] != triple[2]]
    assert not differing, differing[:3]


def test_ids_are_those_of_the_reference_in_python_and_in_the_graph(
    tokenizer, without_prefix, tiny_corpus
):
    texts = [*tiny_corpus[:100], *hostile_strings(300)]
    assert_same_ids(tokenizer, texts)
    assert_same_ids(without_prefix, texts)


def test_the_vocabulary_has_the_special_ids_of_roberta(vocabulary, tokenizer):
    assert vocabulary.size == tokenizer.vocab_size <= 600
    ids = [tokenizer.cls_id, tokenizer.pad_id, tokenizer.sep_id, tokenizer.unk_id]
    assert [*ids, tokenizer.mask_id] == [0, 1, 2, 3, vocabulary.size - 1]
    assert set(tokenizer.ordinary_ids) == set(range(vocabulary.size)) - {*ids, tokenizer.mask_id}
    assert vocabulary.coverage.fraction == 1
    assert tokenizer.id_of("Ġthe") != tokenizer.unk_id


def test_no_text_becomes_a_special_token_even_if_the_corpus_is_full_of_them(tmp_path):
    texts = [" ".join(SPECIAL_PIECES * 50), "x<s>y</s><mask>" * 100]
    tokenizer = Tokenizer.load(train_byte_bpe(texts, tmp_path / "bpe", 400).path)
    ids = tokenizer.encode("".join(texts))
    assert not set(ids) & set(tokenizer.model.special_ids)
    assert tokenizer.decode(ids) == "".join(texts)


@pytest.mark.parametrize("text", ["naïve 漢字 \U0001f600 don't", " two  spaces ", "\t\n", ""])
def test_decoding_gives_the_text(tokenizer, without_prefix, text):
    assert without_prefix.decode(without_prefix.encode(text)) == text
    assert tokenizer.decode(tokenizer.encode(text)) == text.removeprefix(" ")


def test_a_mask_absorbs_the_space_before_it(tokenizer):
    graph = graph_tokenizer(tokenizer)
    texts = ["The  ", "of", " "]
    assert graph.before_mask(tf.constant(texts)).numpy().tolist() == [b"The", b"of", b""]
    assert tokenizer.continuation_ids(" the") == [tokenizer.id_of("Ġthe")]
    pieces = tf.constant([["Ġthe", "ĠÃ©"], ["Ã©", "<mask>"]])
    shown = [[piece.decode() for piece in row] for row in graph.without_marks(pieces).numpy()]
    assert shown == [["the", "é"], ["é", "<mask>"]]


@pytest.mark.parametrize("kind", ["bpe", "wordpiece"])
def test_the_command_trains_other_kinds(kind, tiny_corpus, tmp_path, capsys):
    (tmp_path / "corpus.txt").write_text("\n\n".join(tiny_corpus))
    command = ["vocab", "--kind", kind, "--corpus", f"{tmp_path}/corpus.txt", "--size", "350"]
    assert main([*command, "--out", f"{tmp_path}/out"]) == 0
    assert "vocabulary of 350 pieces" in capsys.readouterr().out
    assert Tokenizer.load(tmp_path / "out").config.kind == kind
