"""The language of a text, and the encoding of bytes that are not UTF-8, by CLD2 of Chrome."""

import codecs
import contextlib
import unicodedata
from collections import Counter

#: Encodings, as `iconv` and Python name them, each with languages that are written in it. The
#: earlier ones are more frequent.
_ENCODINGS = (
    "CP1252 ca da de en es eu fi fr gl is it nl no pt sv; CP1251 be bg mk ru sr uk; KOI8-U ru uk; "
    "CP866 ru; CP1250 bs cs hr hu pl ro sk sl sq; ISO8859-2 bs cs hr hu pl ro sk sl sq; "
    "CP1254 az tr; CP1255 he; CP1256 ar fa ur; CP1253 el; CP1257 et lt lv; CP1258 vi; CP874 th; "
    "CP932 ja; EUC-JP ja; CP949 ko; GB18030 zh; BIG5 zh"
)
#: Bytes that are looked at, and characters below which nothing is certain.
_MOST_BYTES, _FEWEST_CHARACTERS = 1 << 16, 20


def detect_language(text: str) -> str | None:
    """Returns the code of the language of more than half of a text; None if that is not certain.

    The code need not be one of `sentences.LANGUAGES`: Latin is `la`.
    """
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
        return None
    return "he" if language == "iw" else language


def detect_encodings(data: bytes) -> list[str]:
    """Returns the encodings in which bytes that are not UTF-8 are text, the most frequent first.

    Those are the ones in which they read as a language that is written in them, with the fewest
    signs among their letters. Of encodings in which they are the same text, the first is returned.
    """
    sample = b"\n".join(line for line in data.splitlines() if not line.isascii())[:_MOST_BYTES]
    signs: dict[str, tuple[int, str]] = {}  # text -> the number of its signs, and the encoding
    for encoding, *languages in map(str.split, _ENCODINGS.split(";")):
        with contextlib.suppress(UnicodeDecodeError):
            # Half a character may be at the end.
            text = codecs.getincrementaldecoder(encoding)().decode(sample)
            if len(text) >= _FEWEST_CHARACTERS and detect_language(text) in languages:
                marks = (one for one in text if unicodedata.category(one)[0] in "CSN")
                signs.setdefault(text, (sum(not one.isascii() for one in marks), encoding))
    fewest = min(signs.values(), default=(0,))[0]
    return [encoding for count, encoding in signs.values() if count == fewest]
