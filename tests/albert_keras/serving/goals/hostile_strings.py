"""Texts and bytes: real ones of any language, and such as nobody expects, the same each time."""

import itertools
import random
import string
import sys
import unicodedata

import tensorflow as tf

#: Assigned in Unicode 13 and 14, after TensorFlow's tables of characters, which do not know their
#: case, compatibility or combining class: first and last code point.
_TOO_NEW = """
898-89F 8CA-8D2 C3C-C3C 1715-1715 1ABF-1ACE 1DFA-1DFA 2C2F-2C2F A7C0-A7C0 A7D0-A7D0 A7D6-A7D6
A7D8-A7D8 A7F2-A7F4 A82C-A82C AB69-AB69 10570-1057A 1057C-1058A 1058C-10592 10594-10595
10781-10785 10787-107B0 107B2-107BA 10EAB-10EAC 10F82-10F85 11070-11070 11938-11938 1193D-1193E
11943-11943 16FF0-16FF1 1E2AE-1E2AE 1FBF0-1FBF9
"""
TOO_NEW = {
    chr(code)
    for first, last in (stretch.split("-") for stretch in _TOO_NEW.split())
    for code in range(int(first, 16), int(last, 16) + 1)
}
LITERALS = ("[CLS]", "[SEP]", "[MASK]", "<pad>", "<unk>", "[PAD]", "<s>", "▁", "\u2047")

_SPACES = "".join(filter(str.isspace, map(chr, range(sys.maxunicode + 1))))
_BLANKS = _SPACES + "\u200b\u200c\u200d\u2060\ufeff\u00ad\u180e\0\x01\x7f"
_BIDI = "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_DIGITS = "0123456789０９٠٩१९½²①ⅷ,，、٬."
_EMOJI = "👩‍👩‍👧‍👦 👩🏽‍🔬 🏳️‍🌈 🏴󠁧󠁢󠁳󠁣󠁴󠁿 🇩🇪 🇩 1️⃣ #️⃣ ❤️ ❤ ☺︎ ☺️ 😀 🤦🏻‍♂️ 🧑‍🚀 🫠".split() + [
    "\u200d",
    "\ufe0f",
    "\U0001f3fd",
    "\U000e0067",
]
_RIGHT_TO_LEFT = "שָׁלוֹם עולם مرحبا بالعالم ﷺ ﻻ ܫܠܡܐ ދިވެހި ߒߞߏ 𐤀𐤁 123".split()
_WORDS = "The old ferry left Ihr Über straße МОСКВА Ελλάς İstanbul 東京 ｶﾞｷﾞ हिन्दी ไทย ﬁne №".split()
_LETTERS = string.ascii_letters + " 1,(-'"
#: Characters that are not these: unassigned, surrogates, private.
_NOT = ("Cn", "Cs", "Co")


def strange_texts(count, seed=0):
    """Draws texts, among which each character of Python's Unicode is once, but `TOO_NEW`.

    Args:
        count: int. At least 3000.
        seed: int.

    Returns:
        list of str. None has more than 16 KB.
    """
    draw = random.Random(seed)
    characters = map(chr, range(sys.maxunicode + 1))
    characters = [one for one in characters if unicodedata.category(one) not in _NOT]
    characters = [one for one in characters if one not in TOO_NEW]
    marks = [one for one in characters if unicodedata.category(one).startswith("M")]
    texts = [_block(draw, characters[at : at + 64]) for at in range(0, len(characters), 64)]
    makers = [
        lambda: "".join(_marked(draw, marks) for _ in range(draw.randint(1, 30))),
        lambda: _joined(draw, [*(_disguised(draw, one) for one in LITERALS), "a", " ", "("], 12),
        lambda: _joined(draw, [*_WORDS, *draw.choices(_BLANKS, k=40)], 40),
        lambda: _joined(draw, [*_EMOJI, " ", "a"], 30),
        lambda: _joined(draw, [*_RIGHT_TO_LEFT, *_BIDI, " ", "abc"], 30),
        lambda: draw.choice(["x", "ab", "東", "é", "\U0001f600"]) * draw.randint(500, 4000),
        lambda: "".join(draw.choices(_LETTERS[:52], k=draw.randint(500, 4000))),
        lambda: _joined(draw, [*_DIGITS, *_DIGITS, " ", "x"], 60),
        lambda: "".join(draw.choices(characters, k=draw.randint(1, 60))),
        lambda: _spoilt(draw, " ".join(draw.choices(_WORDS, k=30)), characters),
    ]
    texts += [make() for make in itertools.islice(itertools.cycle(makers), count - len(texts))]
    return texts


def _block(draw, characters):
    """Puts a stretch of characters between letters, so that each is a piece of its own."""
    draw.shuffle(characters)
    return "".join(one + draw.choice(_LETTERS) * draw.randint(0, 1) for one in characters)


def _marked(draw, marks):
    return draw.choice("aeIiOußकก가 ") + "".join(draw.choices(marks, k=draw.randint(0, 4)))


def _disguised(draw, literal):
    """Writes a literal in another case or width, or with something in between."""
    wide = "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in literal)
    parted = draw.choice(_BLANKS).join(literal)
    return draw.choice([literal, literal.lower(), wide, wide.lower(), literal.title(), parted])


def _joined(draw, parts, most):
    return "".join(draw.choices(parts, k=draw.randint(1, most)))


def _spoilt(draw, text, characters):
    for _ in range(draw.randint(1, 10)):
        at = draw.randrange(len(text))
        text = text[:at] + draw.choice(characters) + text[at + draw.randint(0, 1) :]
    return text


def real_lines(data):
    """Returns lines in many languages and scripts, clean and dirty."""
    paths = sorted((data / "corpus" / "wikipedia-mars").glob("*.txt"))
    paths += sorted((data / "corpus" / "books-de").glob("*.txt"))[:3]
    paths += [data / "corpus" / "books-zh" / "sanguo_yanyi.txt"]
    paths += [data / "dirty" / "blns" / "blns.txt", *sorted((data / "dirty" / "utf8").iterdir())]
    paths += [data / "dirty" / "encodings" / "Emoji-Lipsum.utf8.txt"]
    paths += [data / "dirty" / "derived" / "german.mixed-utf8-latin1.txt"]
    lines = []
    for path in paths:
        found = path.read_bytes().decode(errors="replace").split("\n")
        lines += [line[:4000] for line in found if line.strip()][:: max(1, len(found) // 500)]
    return lines


def texts_of_any_length(corpus, count, most):
    """Draws texts (bytes) of up to so many words, with masks, tabs, blanks and broken bytes."""
    draw = random.Random(3)
    words = [*" ".join(corpus).split(), *["[MASK]", "\t", "_", "\udcff", "東京", "Ünder\0"] * 99]
    texts = []
    for number in range(count):
        longest = most if number % 2 else most // 10
        text = " ".join(draw.choices(words, k=draw.randint(0, longest)))
        texts.append(text.encode(errors="surrogateescape"))
    return texts


#: Bytes that are no UTF-8: cut characters, surrogates, overlong ones, beyond the last, UTF-16.
_BROKEN = [b"\xff", b"\xfe", b"\0", b"\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80"]
_BROKEN += [b"\xed\xa0\xbd\xed\xb8\x80", b"\xc0\x80", b"\xc0\xaf", b"\xe0\x80\xaf", b"\xf5\x80"]
_BROKEN += [b"\xf0\x80\x80\x80", b"\xf4\x90\x80\x80", b"\xfc\x84\x80\x80\x80\x80", b"\xff\xfea\0"]
_PARTS = [*_BROKEN, b" ", b"\t", b"\n", b"_", b"[MASK]", b"[CLS]", b"a", b"The ferry", b"12,"]
_PARTS += [text.encode() for text in (*_WORDS, *_EMOJI, *_BLANKS, "＿", "▁", "\U0010ffff")]
_SIZES = [4, 20, 40, 60, 60, 100, 200, 400, 1000, 3000]
_LARGE = 100_000
_HUGE = 5_000_000


def hostile_bytes(count, seed=0):
    """Draws byte strings: most short, one of 100 up to 100 KB, one of 1000 of 5 MB (list)."""
    draw = random.Random(seed)
    found = []
    for number in range(count):
        size = draw.randint(0, _SIZES[number % len(_SIZES)])
        if number % 100 == 99:
            size = _HUGE if number % 1000 == 999 else draw.randint(_LARGE // 2, _LARGE)
        found.append(_bytes(draw, size))
    return found


def _bytes(draw, size):
    way = draw.randrange(4)
    if way == 0 or size == 1:
        return draw.randbytes(size)
    if way == 1:
        part = draw.choice(_PARTS)
        return (part * (size // len(part) + 1))[:size]
    some = draw.choices(_PARTS, k=min(size, 400))  # long ones repeat themselves
    whole = b"".join(some)
    return (whole * (size // max(1, len(whole)) + 1))[:size]


def example_of(**texts):
    """Returns a serialized tf.Example of texts (bytes) by name."""
    features = {
        name: tf.train.Feature(bytes_list=tf.train.BytesList(value=[text]))
        for name, text in texts.items()
    }
    features = tf.train.Features(feature=features)
    return tf.train.Example(features=features).SerializeToString()


def hostile_examples(texts, seed=0):
    """Draws for each text (bytes) something that is a tf.Example, was one, or never will be."""
    draw = random.Random(seed)
    return [_example(draw, number, text) for number, text in enumerate(texts)]


def _example(draw, number, text):
    whole = example_of(text=text[: len(text) // 2], pair=text[len(text) // 2 :])
    at = draw.randrange(len(whole)) if number % 2 else draw.randrange(min(len(whole), 30))
    return [
        whole,
        text,
        whole[:at],
        whole[at:],
        whole[:at] + draw.randbytes(draw.randint(1, 4)) + whole[at + 1 :],
        # A length of 32, 35, 63 or 70 bits, or one that never ends.
        whole[:at] + b"\n" + draw.choice([4, 5, 9, 10, 99]) * b"\xff" + b"\x01" + whole[at:],
        whole[:at] + b"\n" + b"\xff\xff\xff\xff\x07" + whole[at:],
        whole * draw.randint(2, 100 if len(text) < 1000 else 2),
        b"\n\0" * draw.randint(1, 200) + whole,
        draw.choice([b"\n", b"\x12", b"\x0a\x02\x0a\x00", b"\x08\x01", b"\x0d"]) * (at + 1),
        _nested(text[:5000], draw.randint(1, 40)),
        tf.train.Example(
            features=tf.train.Features(
                feature={
                    "text": tf.train.Feature(int64_list=tf.train.Int64List(value=[-1, 2**62])),
                    "pair": tf.train.Feature(float_list=tf.train.FloatList(value=[1.0] * 99)),
                    "": tf.train.Feature(),
                }
            )
        ).SerializeToString(),
    ][number % 12]


def _nested(message, depth):
    """Makes a message the first field of another, again and again."""
    for _ in range(depth):
        size, length = len(message), b""
        while size > 127:
            size, length = size >> 7, length + bytes([size & 127 | 128])
        message = b"\n" + length + bytes([size]) + message
    return message
