"""Signs that a text is something else, which the checks of corpora and of examples count."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

#: Bytes of UTF-8 after the first, as Windows-1252 and Windows-1251 show them; without characters
#: that stand after a word in other texts, such as quotation marks.
_LATER = "\x80-\x9f¡-ª¬®-¶¸-º¼-¿€†‡‰ŠŒŽšœžŸƒˆ˜"
_CYRILLIC = "ЂЃѓ†‡€‰ЉЊЌЋЏђљњќћџЎўЈҐЁЄЇІіґёєјЅѕї¤¦§©¬®°±µ¶№"
#: What stands close together in source code alone. Here and below the first character is matched
#: on its own and then looked at again, which is several times faster.
_CODE = (
    r"[][(=!<\-{};:._$+*%#SFW](?:(?<=[A-Za-z_][][(])|(?<=[=!])=|(?<=[-=])>|(?<=<)-|(?<=\w =) "
    r"|(?<=[{}])|(?<=[])*][;:])|(?<=[a-z][._])[a-z_]+[][( =,;]|(?<=\$)[A-Za-z]|(?<=:):|(?<=\w;)$"
    r"|(?<=[\w)] [+*%]) \w|(?<= -)[a-z] |(?<=S)ELECT |(?<=F)ROM |(?<=W)HERE |(?<=#)include)"
)
#: Examples of a sign, and characters of it and around it that they show.
_EXAMPLES, _SHOWN, _AROUND = 3, 30, 20


class Sign(NamedTuple):
    """What shows that a text, or another value, is something else."""

    pattern: str
    advice: str
    most: float = 0.0  # a larger fraction of the texts is a warning


#: Markup is of HTML, office programs, terminals, wikis, forums, Markdown and scanned pages, escapes
#: of characters, or what has hardly any letters.
TEXT_SIGNS = {
    "markup": Sign(
        r"[<&{[~|P`_\\%=](?:(?<=<)/?[A-Za-z][^<>|]*>|(?<=&)#?\w+;|(?<={){|(?<=~)~|(?<=P)ageV?\d"
        r"|(?<=\[)(?:\[|\d\d?m|/\w+\])|(?<=\|)[^|>]*\|(?!>)|(?<=`)``|(?<=_)x[\dA-F]{4}_"
        r"|(?<=\\)(?:u[\da-f]{4}|n(?![a-z])|x[\da-f]{2})|(?<=%)(?:20|[C-E][\dA-F]%)"
        r"|(?<==)[C-E][\dA-F]=[89AB])|\A\s*(?:[#=*]{2,}|# )|\A[-=*_~#\s]{3,}\Z"
        r"|\A(?=(?:\s*\S){8})(?!.*(?:[^\W\d_]{3}|[\u0300-\u1fff\u2e80-\ud7ff]))"
        r"|[\d.,_=*+/-][\W\d_]{29}",
        "it is learned as if it were text",
        0.01,
    ),
    "source code": Sign(
        rf"(?s)(?:{_CODE}.{{0,18}}?){{2}}{_CODE}", "it has no sentences, and words of its own", 0.1
    ),
    "controls": Sign(
        "[\0-\x08\x0e-\x1f\x7f-\x9f\xad\u200b\u2060\ufff9-\ufffb]"
        "(?:(?<!\u200b)|(?<=[A-Za-z]\u200b)(?=[A-Za-z]))",
        "remove these characters, or write spaces: words beside them are joined",
        0.001,
    ),
    "encoding": Sign(
        rf"[À-ðРС√‚\ue000-\uf8ff\ufffd](?:(?<=[Â-ÅÎ-Ñ×-Ù])[{_LATER}]|(?<=Ã)[\xa0\xad]"
        rf"|(?<=â)[€\x80]|(?<=ð)Ÿ|(?<=[à-ï])[{_LATER}]{{2}}|(?<=[À-ð])[À-ÿ]{{3}}"
        rf"|(?<=[РС])[{_CYRILLIC}][РС][{_CYRILLIC}]|(?<=√)[©®§±†°≥]|(?<=‚)Ä[ôúùì]|(?<=[\ue000-\ufffd]))",
        "letters were lost, or encoded twice, as é is Ã© then: `ftfy` restores most of them",
        0.001,
    ),
    "separators": Sign(
        r"<\|\w+\|>|</?s>|<(?:eos|bos|eod)>",
        "they are read as text: separate documents by files, or by lines of a .jsonl",
    ),
}


class SignCounter:
    """Counts the texts that have signs, and keeps examples."""

    def __init__(self, signs: dict[str, Sign] = TEXT_SIGNS):
        self._signs, self._texts, self._counts = signs, 0, Counter()
        self._examples: dict[str, dict[str, str]] = {name: {} for name in signs}

    def add(self, text: str, place: str = "") -> None:
        """Adds a text; one example is kept of each file, with whose name `place` begins."""
        self._texts += 1
        for name, sign in self._signs.items():
            if match := re.search(sign.pattern, text):
                self._counts[name] += 1
                examples = self._examples[name]
                if len(examples) < _EXAMPLES:
                    shown = f"{place}: `{_excerpt(text, *match.span())}`".removeprefix(": ")
                    examples.setdefault(re.split("[:#@]", place)[0] or shown, shown)

    def findings(self, what: str) -> Iterator[tuple[bool, str, str]]:
        """Yields of each sign that was found, and of markup in any case, a `Finding` for people.

        It is whether there are few, the name of the sign, and a text; `what` names the texts.
        """
        for name, (_, advice, most) in self._signs.items():
            count, share = self._counts[name], self._counts[name] / max(self._texts, 1)
            text = f"{100 * share:.1f} % of the {what} ({count:,})"
            if share > most:
                text += f": {advice}"
            if count or name == "markup":
                yield share <= most, name, "; ".join([text, *self._examples[name].values()])


def _excerpt(text, begin, end):
    """Returns a place of a text with what is around it, and escapes of what is not visible."""
    first, last = max(0, begin - _AROUND), min(end, begin + _SHOWN) + _AROUND
    visible = (one if one.isprintable() else f"\\u{ord(one):04x}" for one in text[first:last])
    return f"{'…' if first else ''}{''.join(visible)}{'…' if last < len(text) else ''}"
