"""Letters of a text, and what is done with its accents and its case."""

import itertools
import unicodedata
from collections import Counter
from collections.abc import Iterable

from data_pipeline.errors import InputError
from data_pipeline.text.sentences import check_language

#: Fraction of the letters and marks from which the language of a text must be given.
_MOST_LOST = 0.001
#: Characters of a text that are looked at before a vocabulary is trained.
_SAMPLE_CHARACTERS = 400_000
_LETTERS_SHOWN = 5
#: Languages with a letter `ı`, whose capital is `I`: in lower case both would be `i`.
_DOTLESS = ("az", "tr")


def check_is_english(characters: Counter) -> None:
    """Checks a text whose language was not given, by its counted characters (Counter of str).

    Raises:
        InputError: If more than one letter in a thousand has an accent, or is not Latin. In English
            these are a few names.
    """
    letters = {one: n for one, n in characters.items() if unicodedata.category(one)[0] in "LM"}
    others = {one: n for one, n in letters.items() if _has_accent(one) or not _is_latin(one)}
    share = sum(others.values()) / max(sum(letters.values()), 1)
    if share <= _MOST_LOST:
        return
    most = [one for one, _ in Counter(others).most_common(_LETTERS_SHOWN)]
    shown = " ".join(f"◌{one}" if unicodedata.combining(one) else one for one in most)
    raise InputError(
        f"The language of the text must be given, because {100 * share:.1f} % of its letters are "
        f"not those of English ({shown}): at most 0.1 % may be others. Give `language`, or "
        "to a vocabulary `strip_accents` (`albert-keras vocab` has `--language`, `--keep-accents` "
        "and `--strip-accents`, `albert-keras data build` has `--language`)."
    )


def _has_accent(letter):
    return any(map(unicodedata.combining, unicodedata.normalize("NFKD", letter)))


def _is_latin(letter):
    # Combining marks belong to any script; `º` and `µ` are signs of measures.
    return letter.isascii() or "LATIN" in unicodedata.name(letter, "LATIN") or letter in "ªº\u00b5"


def choose_cleanup(
    texts: Iterable[str],
    lower_case: bool | None = None,
    strip_accents: bool | None = None,
    language: str | None = None,
) -> tuple[Iterable[str], bool, bool]:
    """Chooses whether a vocabulary folds case and accents.

    Both are folded for English, as in the released vocabularies. Other languages keep accents, and
    Turkish and Azerbaijani keep case, which distinguishes `ı` from `i`.

    Args:
        texts: iterable of str, read once.
        lower_case, strip_accents: bool or None. As requested; None chooses.
        language: str or None. Code of the language, one of `sentences.LANGUAGES`; None is
            English, which the first texts must be if `strip_accents` is None.

    Returns:
        All of the texts, and both settings.

    Raises:
        InputError: If the language is unknown, or must be given, see `check_is_english`.
    """
    texts, first, size = iter(texts), [], 0
    if language is not None:
        check_language(language)
    elif strip_accents is None:
        for text in texts:
            first.append(text)
            size += len(text)
            if size >= _SAMPLE_CHARACTERS:
                break
        check_is_english(Counter(itertools.chain.from_iterable(first)))
    if strip_accents is None:
        strip_accents = language in (None, "en")
    if lower_case is None:
        lower_case = language not in _DOTLESS
    return itertools.chain(first, texts), lower_case, strip_accents
