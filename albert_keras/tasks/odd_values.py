"""Labels, scores, options and texts of examples that are probably not what they are read as."""

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from albert_keras.report import Finding
from albert_keras.tasks.examples import TaggedExample, normalised, row_of
from data_pipeline.text.signs import TEXT_SIGNS, Sign, SignCounter

_MONTH = (
    "(?:jan|f[eé][bv]|m[aä]r|mrz|a[pvb]r|ma[iy]|ju[inl]|aug|ago|sep|o[ck]t|nov|d[eé][cz]|dic"
    "|янв|фев|мар|апр|ма[йя]|ию[нл]|авг|сен|окт|ноя|дек)"
)
#: Errors of spreadsheets in any language, such as `#N/A`, `#NV` and `#¡VALOR!`, and what is none.
_NONE = r"#(?:n/[ad]|nv|¡?[^\W\d_][\w/]*[!?])|n/a|null|-9{2,}"
_PREFIX = "[BIESMLUW][-_]"
#: Characters of an example that are shown; the fraction of the scores with decimals that have
#: three from which points may separate thousands; and by how many ranges of the others a score is
#: far from them.
_SHOWN, _MOSTLY, _FAR = 40, 0.5, 3
_DROP = "they mean none: remove these rows"
#: Signs of whole values, by what they are values of, see `_values_of`.
_SIGNS = {
    "labels": {
        "dates": Sign(
            rf"(?i)\A(?:\d\d?[-./ ]+{_MONTH}.*|{_MONTH}\w*[-. ]+\d{{2,4}}|\d{{4}}-\d\d-\d\d.*"
            r"|\d\d?([-./])\d\d?\1\d{2,4}|\d\d?[月월] ?\d\d?[日일])\Z",
            "they are dates, which spreadsheets make of 5-9: write these labels again, as text",
        ),
        "missing": Sign(rf"(?i)\A(?:{_NONE})\Z", _DROP),
    },
    "scores": {"missing": Sign(r"\A(?:-9{2,}|9{4,})\Z", f"perhaps {_DROP}")},
    "texts": TEXT_SIGNS
    | {
        "missing": Sign(rf"(?i)\A\s*(?:{_NONE}|nan|none)\s*\Z", _DROP),
        "numbers": Sign(
            r"\A(?:[-+,.:/%$€£\d\s]*\d[-+,.:/%$€£\d\s]*|\s*(?:https?://|www\.)\S+\s*)\Z",
            "or addresses alone: is it their column?",
            0.1,
        ),
    },
    "texts and options": {"blank": Sign(r"\A\s*\Z", "they have no text")},
    "options": {"equal options": Sign(".", "their question has an equal one")},
    "pairs": {"equal texts": Sign(".", "both texts of the pair are equal", 0.1)},
    "tags": {
        "prefixes": Sign(
            rf"\A(?:(?:O|{_PREFIX}.+?)[^\w-]+(?:O|{_PREFIX}.+)|{_PREFIX}{_PREFIX}.+)\Z",
            "a prefix inside a type makes another type of it: give each word one tag",
        )
    },
}


def odd_values(examples: Sequence[Any]) -> Iterator[Finding]:
    """Yields what seems to be wrong with values of examples, with a count and a few of them."""
    counters = {kind: SignCounter(signs) for kind, signs in _SIGNS.items()}
    seen: set[str] = set()
    for example in examples:
        for kind, values in _values_of(example).items():
            for value in values:
                counters[kind].add(value, row_of(example)[0][:_SHOWN])
        row = row_of(example)
        for text in {" ".join(row)} if isinstance(example, TaggedExample) else row:
            if text not in seen:
                counters["texts"].add(text)
                seen.add(text)
    for kind, counter in counters.items():
        yield from itertools.starmap(Finding, counter.findings(kind))


def _values_of(example):
    if isinstance(example, TaggedExample):
        return {"tags": example.tags or ()}
    options = list(map(normalised, getattr(example, "options", ())))
    first, second = (*row_of(example), "")[:2]
    label = example.label if hasattr(example, "label") else None
    labels = label if isinstance(label, tuple) else (label,)
    return {
        "labels": [one for one in labels if isinstance(one, str)],
        "scores": [f"{one:.10g}" for one in labels if isinstance(one, float)],
        "texts and options": [*row_of(example), *options],
        "options": [one * (one in options[:at]) for at, one in enumerate(options)],
        "pairs": [first * (normalised(first) == normalised(second))],
    }


def score_findings(name: str, scores: np.ndarray) -> Iterator[Finding]:
    """Yields the range of scores, float64 [N], and what seems to be something else."""
    low, high = scores.min(), scores.max()
    text = f"min {low:.4g}, mean {scores.mean():.4g}, max {high:.4g}"
    is_same = low == high and len(scores) > 1
    yield Finding(not is_same and None, name, f"{text}: all are the same" if is_same else text)
    named = _SIGNS["scores"]["missing"].pattern
    for far in {low, high} if len(np.unique(scores)) > _FAR else ():
        others, is_named = scores[scores != far], re.match(named, f"{far:.10g}")
        is_far = far % 1 == 0 and abs(others - far).min() > _FAR * np.ptp(others)
        if is_far and not is_named and len(others) + 1 < len(scores):
            text = f"{far:.10g} in {len(scores) - len(others):,} of {len(scores):,}, far from all "
            yield Finding(False, name, f"{text}others: perhaps {_DROP}")
    whole, parts = (scores[(scores % 1 == 0) == is_whole] for is_whole in (True, False))
    three = [one for one in parts if re.fullmatch(r"[1-9]\d{0,2}\.\d\d[1-9]", f"{one}")]
    if 100 < max(whole, default=0) < 1000 and three and len(three) >= _MOSTLY * len(parts):
        text = f"{len(three):,} of {len(scores):,} have three decimals, as {three[0]}, and others "
        text += f"none, as {whole.max():.0f}: if points separate thousands, remove them"
        yield Finding(False, name, text)
