import pytest
import tensorflow as tf

from data_pipeline.errors import InputError
from data_pipeline.tensorflow_line import needs_tf_keras
from data_pipeline.tokenizers.graph_tokenization import (
    graph_tokenizer,
)
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Letters whose small ones are new in Unicode 14, and U+11938, whose parts are new in Unicode 13:
#: after the version of TensorFlow's tables.
TOO_NEW = set("\u2c2f\ua7c0\ua7d0\ua7d6\ua7d8\U00011938") | (
    set(map(chr, range(0x10570, 0x10596))) - set("\U0001057b\U0001058b\U00010593")
)
#: Letters of Unicode 16 with accents as parts: TensorFlow 2.21 knows them, Python 3.13 does not.
TOO_NEW_FOR_PYTHON = set(
    "\U000105c9\U000105e4\U00011383\U00011385\U0001138e\U00011391\U000113c5\U000113c7\U000113c8"
) | set(map(chr, (*range(0x16121, 0x16129), *range(0x16D68, 0x16D6B))))

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]"]
WORDS = "un want wa runn the of and mask sep cls ab 12 s".split()
TAILS = "##want ##ed ##ing ##s ##a ##b ##12 ##c".split()

TEXTS = [
    "",
    " \t\n\u3000",
    "UNwant\u00e9d,running",
    "[MASK]s [mask] [CLS]［ＭＡＳＫ］[unused1]##s",
    "曹操曰：“何故？”ＡＢ",
    "a\0b \0 \ufffdc\u200b \x07 \x85\x1c",
    "ΟΔΟΣ ΣΑΣ' Σ. ΣΑ",
    "a" + "s" * 199,
    "a" + "s" * 200,
    "\U0001f469" * 200,
    "曹" * 300,
    "a\u0301" * 300,
    "İI\u0307ß ﬁ a≠b \u0301a",
    "한국어 हिन्दी カナ",
]


@pytest.fixture(scope="module", params=[True, False], ids=["lowered", "cased"])
def tokenizer(request, tmp_path_factory):
    letters = [
        chr(code) for code in (*range(0x21, 0x7F), *range(0x3B1, 0x3CA), *range(0x4E00, 0x4F00))
    ]
    pieces = dict.fromkeys([*SPECIAL, *WORDS, *TAILS, *letters, *"曹操曰何故：？", " "])
    path = tmp_path_factory.mktemp("wordpiece") / "vocab.txt"
    path.write_text("\n".join(pieces), encoding="utf-8")
    return Tokenizer.load(path, lower_case=request.param)


def in_graph(function, texts):
    """Runs a graph on texts (list of str) and returns a list of lists."""
    graph = tf.function(function, input_signature=[tf.TensorSpec([None], tf.string)])
    parts = [texts[start : start + 5000] for start in range(0, len(texts), 5000)]
    return [row for part in parts for row in graph(part).to_list()]


def check(tokenizer, texts):
    """Compares ids, and words too: most strange characters are all one id."""
    graph = graph_tokenizer(tokenizer)
    rows = zip(texts, in_graph(graph.__call__, texts), in_graph(graph.words, texts), strict=True)
    different = [
        ascii(text)
        for text, ids, words in rows
        if ids != tokenizer.encode(text)
        or [word.decode() for word in words] != tokenizer.model.basic.words(text)
    ]
    assert different == []


def test_a_graph_gives_the_ids_of_python(tokenizer):
    check(tokenizer, TEXTS)
    graph = graph_tokenizer(tokenizer)
    assert graph.continuation(TEXTS).to_list() == list(map(tokenizer.continuation_ids, TEXTS))
    assert graph(TEXTS).dtype == tf.int32
    assert graph(tf.constant([], tf.string)).to_list() == []


def test_every_character_is_treated_as_in_python(tokenizer):
    codes = [*range(0x3100), *range(0xA480, 0xAC00, 3), *range(0xF8F0, 0x11A00, 2)]
    codes += [*range(0x3100, 0xD800, 200), *range(0x11A00, 0x2FB00, 50), 0xE0001, 0x10FFFF]
    lowered = TOO_NEW if tokenizer.config.lower_case else set()
    if needs_tf_keras() and lowered:
        lowered = lowered | TOO_NEW_FOR_PYTHON
    check(tokenizer, [f"a{chr(code)}b" for code in codes if chr(code) not in lowered])


def test_real_and_hostile_lines_are_split_as_in_python(tokenizer, shared_data):
    lines = []
    for name in ("dirty/blns/blns.txt", "dirty/utf8/UTF-8-test.sanitized.txt"):
        lines += (shared_data / name).read_text(encoding="utf-8").split("\n")
    (book,) = (shared_data / "corpus" / "books-zh").glob("*.txt")
    lines += book.read_text(encoding="utf-8").split("\n")[::40]
    check(tokenizer, lines)


def test_a_vocabulary_that_tensorflow_text_cannot_take_is_refused(tmp_path):
    (tmp_path / "vocab.txt").write_text("\n".join([*SPECIAL, "a" * 300]))
    tokenizer = Tokenizer.load(tmp_path / "vocab.txt")
    with pytest.raises(InputError, match="tensorflow-text cannot use this vocabulary"):
        graph_tokenizer(tokenizer)
