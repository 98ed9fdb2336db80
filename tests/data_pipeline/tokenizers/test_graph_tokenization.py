import random
from importlib.metadata import version

import pytest
import tensorflow as tf

from data_pipeline.errors import InputError
from data_pipeline.tokenizers.graph_tokenization import GraphTokenizer, graph_tokenizer
from data_pipeline.tokenizers.tokenization import Tokenizer
from tests.keras_line import IS_KERAS_3

#: From 0.2.2 on, sentencepiece orders equally likely pieces otherwise than tensorflow-text does.
TIES_DIFFER = tuple(map(int, version("sentencepiece").split(".")[:3])) >= (0, 2, 2)

#: Assigned in Unicode 13 and 14, after the version of TensorFlow's tables.
TOO_NEW = {"\ua7f2", "\ua7f3", "\ua7f4", "\U000107a5"} | set(map(chr, range(0x1FBF0, 0x1FBFA)))
#: Assigned in Unicode 16, which TensorFlow 2.21 knows and Python 3.12 and 3.13 do not.
TOO_NEW_FOR_PYTHON = set(map(chr, range(0x1CCD6, 0x1CCFA)))

#: Spaces, marks, letters that change, other scripts, literals, numbers, joiners and controls.
TEXTS = [
    "",
    " ",
    "\t\n\u3000",
    "The old ferry (for the fourth time) left.",
    "  Ünïcode\tCafé\n",
    "ﬁne ½ ™ İstanbul",
    "Straße ＡＢＣ",
    "がぎぐ ｶﾞ",
    "ΟΔΟΣ ΣΑΣ Σ",
    "한국어 \u1112\u1161\u11ab",
    "हिन्दी",
    "a´b ¨ c",
    "\u0301a",
    "[MASK] [CLS]<pad>［ＭＡＳＫ］ [sep] <unk>",
    "In 1999, 12, x12, 7, we bx12, 7,",
    "s and the",
    "-key",
    "(x",
    "▁▁a ▁",
    "曹操曰：“何故？”漢字漢字 x",
    "İI\u0307ß ΣΑΣ' Σ. ﷺ a≠b",
    "UNwant\u00e9d,running [mask] [unused1]##s",
    "a\0b \0",
    "x" * 5000,
    "👩\u200d👩\u200d👧 \ufeffa\u200bb\u00adc\ufffd",
    "\x01\x0b\x1c\x85 \u2028",
]


def graph_ids(function, texts):
    """Runs a graph on texts (list of str or bytes) and returns a list of lists of int."""
    specification = tf.TensorSpec([None], tf.string)
    graph = tf.function(function, input_signature=[specification])
    return [ids for i in range(0, len(texts), 2000) for ids in graph(texts[i : i + 2000]).to_list()]


def disagreements(texts, received, expected):
    if TIES_DIFFER:
        received, expected = map(sorted, received), map(sorted, expected)
    return [
        ascii(text)
        for text, ids, wanted in zip(texts, received, expected, strict=True)
        if ids != wanted
    ]


def check(tokenizer, texts):
    graph = GraphTokenizer(tokenizer)
    expected = [tokenizer.encode(text) for text in texts]
    assert disagreements(texts, graph_ids(graph.__call__, texts), expected) == []
    expected = [tokenizer.continuation_ids(text) for text in texts]
    assert disagreements(texts, graph_ids(graph.continuation, texts), expected) == []


@pytest.fixture(scope="module")
def dirty_texts(shared_data):
    """Real and hostile lines in many scripts."""
    lines = (shared_data / "dirty" / "blns" / "blns.txt").read_text(encoding="utf-8").split("\n")
    utf8 = shared_data / "dirty" / "utf8" / "UTF-8-test.sanitized.txt"
    lines += utf8.read_text(encoding="utf-8").split("\n")
    for path in sorted((shared_data / "corpus" / "wikipedia-mars").glob("*.txt")):
        lines += path.read_text(encoding="utf-8").split("\n")[::60]
    return lines


def test_real_and_hostile_lines_are_split_as_in_python(tiny_tokenizer, dirty_texts):
    check(tiny_tokenizer, TEXTS + dirty_texts)


def test_numbers_are_split_from_commas_as_in_python(digit_tokenizer):
    assert digit_tokenizer.encode("bx12, 7,") != digit_tokenizer.model.processor.encode("bx12, 7,")
    check(digit_tokenizer, TEXTS)


@pytest.mark.parametrize(
    "settings",
    [{}, {"lower_case": False, "strip_accents": False}],
    ids=str,
)
def test_the_official_vocabulary_is_rebuilt_with_its_cleanup(settings, official_model, dirty_texts):
    check(Tokenizer.load(official_model, **settings), TEXTS + dirty_texts)


def test_the_cleanup_in_the_graph_differs_for_the_newest_characters_only(official_model):
    tokenizer = Tokenizer.load(official_model)
    # Of ideographs and syllables, which are many, some.
    codes = (*range(0x3400), *range(0x3400, 0xD800, 50), *range(0xF8F0, 0x11A00))
    codes += (*range(0x11A00, 0x1B000, 20), *range(0x1B000, 0x20000))
    characters = list(map(chr, codes))
    texts = [f"a{character}b" for character in characters]
    received = graph_ids(GraphTokenizer(tokenizer).__call__, texts)
    expected = [ids.tolist() for ids in tokenizer.encode_batch(texts)]
    different = {text[1] for text, a, b in zip(texts, received, expected, strict=True) if a != b}
    assert different <= (TOO_NEW_FOR_PYTHON if IS_KERAS_3 else TOO_NEW)


def test_bytes_that_are_not_text_are_replaced(tiny_tokenizer):
    rng = random.Random(5)
    texts = [b"\xff\xfe\xc3", b"a\xe2\x82b", b"\xed\xa0\x80", b"\xf5\x80\0", b"(\xc3(\xa9"]
    texts += [rng.randbytes(rng.randint(0, 40)) for _ in range(2000)]
    graph = GraphTokenizer(tiny_tokenizer)
    expected = [tiny_tokenizer.encode(text.decode(errors="replace")) for text in texts]
    assert disagreements(texts, graph_ids(graph.__call__, texts), expected) == []


# WordPiece

#: Letters whose small ones are new in Unicode 14, and U+11938, whose parts are new in Unicode 13:
#: after the version of TensorFlow's tables.
WORDS_TOO_NEW = set("\u2c2f\ua7c0\ua7d0\ua7d6\ua7d8\U00011938") | (
    set(map(chr, range(0x10570, 0x10596))) - set("\U0001057b\U0001058b\U00010593")
)
#: Letters of Unicode 16 with accents as parts: TensorFlow 2.21 knows them, Python 3.13 does not.
WORDS_TOO_NEW_FOR_PYTHON = set(
    "\U000105c9\U000105e4\U00011383\U00011385\U0001138e\U00011391\U000113c5\U000113c7\U000113c8"
) | set(map(chr, (*range(0x16121, 0x16129), *range(0x16D68, 0x16D6B))))

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]"]
WORDS = "un want wa runn the of and mask sep cls ab 12 s".split()
TAILS = "##want ##ed ##ing ##s ##a ##b ##12 ##c".split()

#: Words around the limit of characters.
LONG_WORDS = ["a" + "s" * 199, "a" + "s" * 200, "\U0001f469" * 200, "曹" * 300, "a\u0301" * 300]


@pytest.fixture(scope="module", params=[True, False], ids=["lowered", "cased"])
def tokenizer(request, tmp_path_factory):
    codes = (*range(0x21, 0x7F), *range(0x3B1, 0x3CA), *range(0x4E00, 0x4F00))
    letters = map(chr, codes)
    pieces = dict.fromkeys([*SPECIAL, *WORDS, *TAILS, *letters, *"曹操曰何故：？", " "])
    path = tmp_path_factory.mktemp("wordpiece") / "vocab.txt"
    path.write_text("\n".join(pieces), encoding="utf-8")
    return Tokenizer.load(path, lower_case=request.param)


def check_words(tokenizer, texts):
    """Compares ids, and words too: most strange characters are all one id."""
    graph = graph_tokenizer(tokenizer)
    rows = zip(texts, graph_ids(graph.__call__, texts), graph_ids(graph.words, texts), strict=True)
    different = [
        ascii(text)
        for text, ids, words in rows
        if ids != tokenizer.encode(text)
        or [word.decode() for word in words] != tokenizer.model.basic.words(text)
    ]
    assert different == []


def test_a_graph_gives_the_word_pieces_of_python(tokenizer):
    texts = TEXTS + LONG_WORDS
    check_words(tokenizer, texts)
    graph = graph_tokenizer(tokenizer)
    assert graph.continuation(texts).to_list() == list(map(tokenizer.continuation_ids, texts))
    assert graph(texts).dtype == tf.int32
    assert graph(tf.constant([], tf.string)).to_list() == []


def test_every_character_of_a_word_is_treated_as_in_python(tokenizer):
    codes = [*range(0x3100), *range(0xA480, 0xAC00, 3), *range(0xF8F0, 0x11A00, 2)]
    codes += [*range(0x3100, 0xD800, 200), *range(0x11A00, 0x2FB00, 50), 0xE0001, 0x10FFFF]
    lowered = WORDS_TOO_NEW if tokenizer.config.lower_case else set()
    if IS_KERAS_3 and lowered:
        lowered = lowered | WORDS_TOO_NEW_FOR_PYTHON
    check_words(tokenizer, [f"a{chr(code)}b" for code in codes if chr(code) not in lowered])


def test_a_vocabulary_that_tensorflow_text_cannot_take_is_refused(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, "a" * 300]))
    tokenizer = Tokenizer.load(tmp_path / "vocab.txt")
    with pytest.raises(InputError, match="tensorflow-text cannot use this vocabulary"):
        graph_tokenizer(tokenizer)
