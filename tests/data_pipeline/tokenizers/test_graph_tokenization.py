import random
from importlib.metadata import version

import pytest
import tensorflow as tf

from data_pipeline.tensorflow_line import needs_tf_keras
from data_pipeline.tokenizers.graph_tokenization import GraphTokenizer
from data_pipeline.tokenizers.tokenization import Tokenizer

#: From 0.2.2 on, sentencepiece orders equally likely pieces otherwise than tensorflow-text does.
TIES_DIFFER = tuple(map(int, version("sentencepiece").split(".")[:3])) >= (0, 2, 2)

#: Assigned in Unicode 13 and 14, after the version of TensorFlow's tables.
TOO_NEW = {"\ua7f2", "\ua7f3", "\ua7f4", "\U000107a5"} | set(map(chr, range(0x1FBF0, 0x1FBFA)))
#: Assigned in Unicode 16, which TensorFlow 2.21 knows and Python 3.12 and 3.13 do not.
TOO_NEW_FOR_PYTHON = set(map(chr, range(0x1CCD6, 0x1CCFA)))

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
    assert different <= (TOO_NEW_FOR_PYTHON if needs_tf_keras() else TOO_NEW)


def test_bytes_that_are_not_text_are_replaced(tiny_tokenizer):
    rng = random.Random(5)
    texts = [b"\xff\xfe\xc3", b"a\xe2\x82b", b"\xed\xa0\x80", b"\xf5\x80\0", b"(\xc3(\xa9"]
    texts += [rng.randbytes(rng.randint(0, 40)) for _ in range(2000)]
    graph = GraphTokenizer(tiny_tokenizer)
    expected = [tiny_tokenizer.encode(text.decode(errors="replace")) for text in texts]
    assert disagreements(texts, graph_ids(graph.__call__, texts), expected) == []


class _Exported(tf.Module):
    def __init__(self, tokenizer):
        super().__init__()
        self.tokenizer = GraphTokenizer(tokenizer)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def cut(self, texts):
        ids = self.tokenizer(texts)
        return {
            "ids": ids.to_tensor(),
            "pieces": tf.gather(self.tokenizer.pieces, ids).to_tensor(),
            "tail": self.tokenizer.continuation(texts).to_tensor(),
        }


def test_a_saved_tokenizer_works(digit_tokenizer, tmp_path):
    text = "The old ferry, bx12, 7, (Café)"
    tf.saved_model.save(_Exported(digit_tokenizer), str(tmp_path / "exported"))
    outputs = tf.saved_model.load(str(tmp_path / "exported")).cut([text])
    assert outputs["ids"].numpy().tolist() == [digit_tokenizer.encode(text)]
    pieces = b"".join(outputs["pieces"].numpy()[0].tolist()).decode()
    assert pieces == "".join(digit_tokenizer.pieces(text))
    assert outputs["tail"].numpy().tolist() == [digit_tokenizer.continuation_ids(text)]
