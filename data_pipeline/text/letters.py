"""Letters, scripts and words of a text, and what is usual for a language."""

import itertools
import logging
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

from data_pipeline.text.corpus_formats import UNSPACED_SCRIPTS
from data_pipeline.text.sentences import LANGUAGES

logger = logging.getLogger(__name__)

#: In scripts without spaces each character counts as a word.
UNSPACED_CHARACTER = re.compile(f"[{UNSPACED_SCRIPTS}]")
_WORD = re.compile(rf"[{UNSPACED_SCRIPTS}]|[^\s{UNSPACED_SCRIPTS}]+")
#: Scripts, each with its languages of `sentences.LANGUAGES`; the others use Latin letters.
_LANGUAGES_OF_SCRIPTS = (
    "Latin az kk sr; Cyrillic be bg kk mk ru sr uk; Greek el; Arabic ar fa ur; Hebrew he; "
    "Han ja ko zh; Hiragana ja; Katakana ja; Hangul ko; Devanagari hi mr ne; Bengali bn; "
    "Gujarati gu; Gurmukhi pa; Kannada kn; Malayalam ml; Oriya or; Tamil ta; Telugu te; Thai th; "
    "Myanmar my; Ethiopic am; Armenian hy; Georgian ka"
)
#: Fraction of the letters in the scripts of the language: below the first the language is wrong,
#: below the second there is a warning.
_NO_SCRIPT, _LITTLE_SCRIPT = 0.1, 0.5
#: Fraction of the letters and marks above which a clean-up that changes them loses letters of the
#: language; and the characters of text that are looked at.
_MOST_LOST, _SAMPLE_CHARACTERS = 0.005, 400_000
#: Letters of Turkish and Azerbaijani, whose capital `I` is not that of `i`.
_DOTLESS = "ıİ"


def words_of(text: str) -> list[str]:
    """Returns what white space separates; in scripts without spaces each character is a word."""
    if text.isascii() or not UNSPACED_CHARACTER.search(text):
        return text.split()
    return _WORD.findall(text)


def scripts_of(characters: Counter) -> dict[str, float]:
    """Returns script -> fraction of all letters among counted characters, the largest first."""
    letters: Counter[str] = Counter()
    for character, count in characters.items():
        if character.isalpha():
            name = unicodedata.name(character, "other")
            script = name.removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ").split()[0]
            letters["Han" if script == "CJK" else script.capitalize()] += count
    total = max(letters.total(), 1)
    return {script: count / total for script, count in letters.most_common()}


def expected_scripts(language: str) -> tuple[str, ...]:
    """Returns the scripts in which a language is written."""
    rows = (row.split() for row in _LANGUAGES_OF_SCRIPTS.split(";"))
    return tuple(script for script, *languages in rows if language in languages) or ("Latin",)


def languages_of_script(script: str) -> str:
    """Returns the codes of the languages written in a script, such as "be, bg or ru"."""
    known = (language for language in LANGUAGES if script in expected_scripts(language))
    *others, last = sorted(known) or ["another language"]
    return f"{', '.join(others)} or {last}" if others else last


def language_fault(
    scripts: dict[str, float], detected: str | None, language: str
) -> tuple[bool, str]:
    """Returns why a text hardly is in a language, by its `scripts_of` and its `detect_language`.

    Returns:
        bool, whether the text is not in a script of the language at all; and str, the reason, or
        "" if there is none.
    """
    expected = expected_scripts(language)
    share = sum(scripts.get(script, 0) for script in expected)
    if not scripts or detected == language:
        return False, ""
    if share < _LITTLE_SCRIPT:
        found = ", ".join(f"{name} {part:.0%}" for name, part in [*scripts.items()][:3])
        fitting = detected if detected in LANGUAGES else languages_of_script(next(iter(scripts)))
        reason = f"`{language}` is written in {' and '.join(expected)}, but the letters of the text"
        return share < _NO_SCRIPT, f"{reason} are {found}; choose {fitting}"
    if detected:
        return False, f"the text reads as `{detected}`"
    # English is also what nobody chose.
    return False, "more than half of the text is in no known language" if language == "en" else ""


def lost_with_accents(characters: Counter) -> tuple[float, str]:
    """Returns the fraction of letters and marks that stripping accents changes, and some of them.

    In English these are a few names; in Hindi they are the virama, in Arabic the hamza, in German
    the umlauts: letters of their own.
    """
    changed = [
        (character, count)
        for character, count in characters.most_common()
        if any(map(unicodedata.combining, unicodedata.normalize("NFKD", character)))
    ]
    total = sum(n for one, n in characters.items() if unicodedata.category(one)[0] in "LM")
    shown = " ".join(f"◌{one}" if unicodedata.combining(one) else one for one, _ in changed[:5])
    return sum(count for _, count in changed) / max(total, 1), shown


def choose_cleanup(
    texts: Iterable[str], lower_case: bool | None, strip_accents: bool | None
) -> tuple[Iterable[str], bool, bool]:
    """Chooses whether a vocabulary folds case and accents, as the first texts allow.

    Both are folded, as in the released vocabularies, unless letters of the language would be lost.

    Args:
        texts: iterable of str, read once.
        lower_case, strip_accents: bool or None. As requested; None chooses.

    Returns:
        All of the texts, and both settings.
    """
    texts, first, size = iter(texts), [], 0
    for text in texts:
        first.append(text)
        size += len(text)
        if size >= _SAMPLE_CHARACTERS:
            break
    characters = Counter(itertools.chain.from_iterable(first))
    share, shown = lost_with_accents(characters)
    dotless = sum(characters[letter] for letter in _DOTLESS)
    confuses_case = dotless > _MOST_LOST * sum(map(characters.get, filter(str.isalpha, characters)))
    if strip_accents is None:
        strip_accents = share <= _MOST_LOST
        if not strip_accents:
            logger.info(
                "accents are kept: %.1f %% of the letters have them (%s)", 100 * share, shown
            )
    if lower_case is None:
        lower_case = not confuses_case
        if confuses_case:
            logger.info("case is kept: lower case would turn `I` into `i`, not into `ı`")
    return itertools.chain(first, texts), lower_case, strip_accents
