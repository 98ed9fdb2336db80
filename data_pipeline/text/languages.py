"""The language of a text, and the encoding of bytes that are not UTF-8, by CLD2 of Chrome."""

import codecs
import contextlib
import unicodedata
from collections import Counter

#: Encodings, as `iconv` and Python name them, each with languages that are written in it. The
#: earlier ones are more frequent.
_ENCODINGS = (
    "CP1252 ca da de en es eu fi fr gl is it nl no pt sv; CP850 da de es fi fr it nl no pt sv; "
    "MACINTOSH da de es fi fr it nl no pt sv; CP1251 be bg mk ru sr uk; KOI8-U ru uk; CP866 ru; "
    "ISO8859-5 be bg mk ru sr; MAC-CYRILLIC be bg mk ru sr uk; CP1250 bs cs hr hu pl ro sk sl sq; "
    "ISO8859-2 bs cs hr hu pl ro sk sl sq; CP1254 az tr; CP1255 he; CP1256 ar fa ur; ISO8859-6 ar; "
    "CP1253 el; CP1257 et lt lv; CP1258 vi; CP874 th; CP932 ja; EUC-JP ja; CP949 ko; GB18030 zh; "
    "BIG5 zh"
)
#: Bytes that are looked at, and characters below which nothing is certain.
_MOST_BYTES, _FEWEST_CHARACTERS = 1 << 16, 20


def detect_language(text: str) -> str | None:
    """Returns the code of the language of more than half of a text; None if that is not certain.

    The code need not be one of `sentences.LANGUAGES`: Latin is `la`.
    """
    return _detect(text)[0]


def _detect(text):
    """Returns the language of a text, and how well the most frequent language suits it."""
    import pycld2

    # CLD2 refuses a text with these, and finds nothing in them.
    hidden = {ord(one): " " for one in set(text) if unicodedata.category(one) in ("Cc", "Cs", "Cn")}
    _, _, found = pycld2.detect(text.translate(hidden), isPlainText=True)
    shares: Counter[str] = Counter()
    for _, code, percent, _ in found:  # zh and zh-Hant are both Chinese
        shares[code.split("-")[0]] += percent
    ((language, share),) = shares.most_common(1)
    # Short Chinese texts look Japanese, but have no kana.
    looks_japanese = language == "ja" and not any("\u3040" <= one <= "\u30ff" for one in text)
    if share <= 50 or language == "un" or looks_japanese:
        language = None
    return "he" if language == "iw" else language, found[0][3]


def detect_encodings(data: bytes) -> list[str]:
    """Returns the encodings in which bytes that are not UTF-8 are text, the most frequent first.

    Those are the ones in which they read as a language that is written in them, with the fewest
    signs among their letters; of those of a language the one in which they suit it best.
    """
    lines = dict.fromkeys(line for line in data.splitlines() if not line.isascii())
    sample = b"\n".join(lines)[:_MOST_BYTES]
    found: dict[str, tuple[int, float, str]] = {}  # language -> signs, misfit, encoding
    for encoding, *languages in map(str.split, _ENCODINGS.split(";")):
        with contextlib.suppress(UnicodeDecodeError):
            # Half a character may be at the end.
            text = codecs.getincrementaldecoder(encoding)().decode(sample)
            language, fit = _detect(text)
            if len(text) >= _FEWEST_CHARACTERS and language in languages:
                marks = (one for one in text if unicodedata.category(one)[0] in "CSN")
                signs = sum(not one.isascii() for one in marks)
                best = found.get(language, (signs + 1, 0.0, ""))
                found[language] = min(best, (signs, -fit, encoding), key=lambda one: one[:2])
    fewest = min(found.values(), default=(0,))[0]
    return [encoding for signs, _, encoding in found.values() if signs == fewest]
