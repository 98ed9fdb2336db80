"""An ExampleReport in words: what it found, and whether that is a reason for a warning."""

from typing import NamedTuple

from albert_keras.report import percent
from albert_keras.tasks.example_report import ExampleReport, SplitReport
from albert_keras.tasks.kinds import CHOICE, KINDS, SPANS, SPANS_OR_NONE, TAGGING
from albert_keras.tasks.metrics import count_caution

#: Beyond these limits a finding is a warning: fractions of the examples, of the tokens, and the
#: number of training examples of a class.
_MOST_REPEATED, _MOST_CONFLICTS, _MOST_TOO_LONG, _MOST_UNKNOWN = 0.01, 0.001, 0.01, 0.01
_LEAST_OF_A_CLASS = 5
_LABELS_SHOWN, _UNKNOWN_SHOWN = 8, 5
_LABEL_NAMES = {
    CHOICE: "right options",
    TAGGING: "tags",
    SPANS: "questions",
    SPANS_OR_NONE: "questions",
}


_IN_TRAINING = "in training"


class Finding(NamedTuple):
    """One property of the examples of a split."""

    is_good: bool | None  # False is a reason for a warning; None neither good nor bad
    name: str
    text: str
    details: tuple[str, ...] = ()  # examples of it


def findings(report: ExampleReport, split: str) -> list[Finding]:
    """Returns the findings about a split, those about its labels and lengths first."""
    one, is_training = report.splits[split], split == next(iter(report.splits))
    found = list(_label_findings(report, one, is_training))
    for part, units in one.lengths.items():
        shown = [f"{unit}: {_quantiles(values)}" for unit, values in units.items()]
        found.append(Finding(None, part, "; ".join(shown)))
    if one.unknown is not None:
        found += [_too_long(report, one), _unknown(one)]
    return [*found, *_repetitions(one)]


def short_findings(report: ExampleReport, split: str) -> list[Finding]:
    """Returns the findings for a log: the labels, the lengths in training, and the warnings.

    Examples that are in the training examples, too, are left to the report of `finetune` on them.
    """
    one, is_training = report.splits[split], split == next(iter(report.splits))
    shown = list(_label_findings(report, one, is_training))
    others = findings(report, split)[len(shown) :]
    if is_training:
        lengths = [
            f"{part} {_quantiles(units['tokens'])}"
            for part, units in one.lengths.items()
            if "tokens" in units
        ]
        shown.append(Finding(None, "tokens", "; ".join(lengths)))
    return shown + [one for one in others if one.is_good is False and one.name != _IN_TRAINING]


def near_equal_finding(report: ExampleReport) -> Finding | None:
    """Returns the finding about labels that are probably the same; None if there are none."""
    if not report.near_equal_labels:
        return None
    groups = [" and ".join(f"`{name}`" for name in group) for group in report.near_equal_labels]
    return Finding(
        False,
        "similar labels",
        f"{'; '.join(groups)} count as different, but may be the same",
    )


def warning_texts(report: ExampleReport) -> list[str]:
    """Returns all warnings as sentences, each with the name of its split."""
    warnings = [
        f"{split}: {finding.name}: {finding.text}"
        for split in report.splits
        for finding in findings(report, split)
        if finding.is_good is False
    ]
    similar = near_equal_finding(report)
    return [*warnings, f"{similar.name}: {similar.text}"] if similar else warnings


def _label_findings(report, one, is_training):
    kind, count = KINDS[report.kind], one.examples
    if not is_training and (caution := count_caution(count, report.metric)):
        yield Finding(False, "number", caution)
    if one.scores:
        shown = ", ".join(f"{name} {value:.4g}" for name, value in one.scores.items())
        yield Finding(None, "scores", shown)
    if not one.labels:
        return
    total = sum(one.labels.values()) if kind is TAGGING else count
    shown = [
        f"{name} {number:,} ({number / total:.1%})".replace("%", " %")
        for name, number in list(one.labels.items())[:_LABELS_SHOWN]
    ]
    text = ", ".join(shown)
    if (more := len(one.labels) - _LABELS_SHOWN) > 0:
        rarest, number = list(one.labels.items())[-1]
        text += f" and {more} more, down to {rarest} {number:,}"
    rare = [name for name, number in one.labels.items() if number < _LEAST_OF_A_CLASS]
    is_good = None
    if is_training and not kind.finds_spans and not kind.has_options:
        is_good = not rare
        if rare:
            names = ", ".join(f"`{name}`" for name in rare[:_LABELS_SHOWN])
            text += f". There are fewer than {_LEAST_OF_A_CLASS} examples of {names}"
    yield Finding(is_good, _LABEL_NAMES.get(kind, "classes"), text)


def _too_long(report, one):
    share, length = one.too_long / max(one.encoded, 1), report.max_seq_length
    sample = "" if one.encoded == one.examples else f" (of {one.encoded:,} that were encoded)"
    if report.uses_windows:
        text = f"{percent(share)} of the examples take several rows of {length} tokens{sample}"
        return Finding(None, "windows", text)
    text = f"{percent(share)} of the examples are longer than {length} tokens{sample}"
    hint = ": what exceeds this length is not read; --max-seq-length changes it"
    is_good = share <= _MOST_TOO_LONG
    return Finding(is_good, "truncated", text + ("" if is_good else hint))


def _unknown(one):
    unknown = one.unknown
    share = unknown.unknown / max(unknown.tokens, 1)
    text = percent(share, 2)
    for name, counts in (("characters", unknown.characters), ("words", unknown.words)):
        if counts:
            shown = ", ".join(f'"{sign}" {count:,}' for sign, count in counts[:_UNKNOWN_SHOWN])
            text += f"; most frequent {name}: {shown}"
    is_good = share <= _MOST_UNKNOWN
    hint = ". The vocabulary may be of another language or domain"
    return Finding(is_good, "unknown tokens", text + ("" if is_good else hint))


def _repetitions(one: SplitReport):
    share = one.repeated / max(one.examples, 1)
    yield Finding(
        share <= _MOST_REPEATED,
        "repeated",
        f"{percent(share)} of the examples ({one.repeated:,}) equal an earlier one, apart from "
        "case, white space and Unicode form",
    )
    details = tuple(
        f"{', '.join(f'`{label}` ({count})' for label, count in conflict.labels.items())}: "
        f"{conflict.text}"
        for conflict in one.conflicting
    )
    yield Finding(
        one.conflicts <= _MOST_CONFLICTS * one.examples,
        "contradictory",
        f"examples that occur with different labels: {one.conflicts:,}",
        details,
    )
    if one.in_training is not None:
        yield Finding(
            not one.in_training,
            _IN_TRAINING,
            f"{one.in_training:,} of the {one.examples:,} examples are also training examples",
        )


def _quantiles(values):
    return ", ".join(f"{name} {value:,}" for name, value in values.items())
