"""Describes the examples of a task before anything is trained on them: labels, lengths, faults.

`finetune` logs the findings, and `albert-keras data check --task` prints them.
"""

import collections
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from albert_keras.report import Finding, percent, shortened
from albert_keras.tasks.examples import (
    ChoiceExample,
    QuestionExample,
    TaggedExample,
    normalised,
    row_of,
)
from albert_keras.tasks.metrics import count_caution
from albert_keras.tasks.odd_values import odd_values, score_findings
from albert_keras.tasks.tables.cells import are_several
from albert_keras.tasks.task import Task, one_line
from albert_keras.tasks.task_config import OWN_TASKS
from data_pipeline.reports.word_runs import near_texts
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Beyond these limits a finding is a warning: fractions of the examples, of the tokens, and the
#: number of training examples of a class.
_MOST_REPEATED, _MOST_CONFLICTS, _MOST_TOO_LONG, _MOST_UNKNOWN = 0.01, 0.001, 0.01, 0.01
_MOST_NEAR = 0.1
_LEAST_OF_A_CLASS = 5
_LABELS_SHOWN, _CONFLICTS_SHOWN, _UNKNOWN_SHOWN, _SHOWN_TEXT = 8, 5, 5, 80
_SIGNS = re.compile(r"(?<=\w)[\s_/-]+|[\u200b-\u200f\u2060\ufeff]")  # the latter are invisible
_WHOLE_NUMBER = re.compile(r"(\d+)\.0+")

#: The finding that `finetune` reports in another way.
IN_TRAINING = "in training"


class SplitReport(NamedTuple):
    """The examples of one split; texts count as equal if they are when `normalised`."""

    examples: int
    findings: list[Finding]  # those about labels and lengths first

    @property
    def warnings(self) -> list[str]:
        return [one.warning for one in self.findings if one.warning]


def report_task(
    task: Task, tokenizer: Tokenizer | None = None, most_encoded: int | None = None
) -> dict[str, SplitReport]:
    """Reads the training and development examples of a task and describes them.

    Development examples are left out if they have no file: an official task may be given a
    training file only. Raises InputError as `Task.read`; see `report_examples` for the rest.
    """
    config = task.config
    has_dev = config.name in OWN_TASKS or config.dev is not None or config.data_dir is not None
    splits = ("train", *(task.dev_splits if has_dev else ()))
    examples = {split: task.read(split) for split in splits}
    return report_examples(task, examples, tokenizer, most_encoded)


def report_examples(
    task: Task,
    splits: dict[str, list],
    tokenizer: Tokenizer | None = None,
    most_encoded: int | None = None,
) -> dict[str, SplitReport]:
    """Describes examples.

    Args:
        task: Task.
        splits: Labelled examples by the name of their split, the training examples first.
        tokenizer: Tokenizer or None. Without one, tokens are not reported.
        most_encoded: int or None. Number of examples of a split whose tokens are counted, at
            regular distances; None counts all.

    Returns:
        dict of str to SplitReport.
    """
    reports, training, trained = {}, None, []
    for split, examples in splits.items():
        found = list(_label_findings(task, examples, is_training=training is None))
        found += odd_values(examples)
        if tokenizer is not None:
            every = 1 if most_encoded is None else max(1, -(-len(examples) // most_encoded))
            found += _token_findings(task, examples[::every], tokenizer)
        keys = [hash(tuple(map(normalised, _texts_of(example)))) for example in examples]
        found += _repetitions(examples, keys)
        if training is not None:
            count = sum(key in training for key in keys)
            text = f"{count:,} of the {len(examples):,} examples are also training examples"
            found.append(Finding(not count, IN_TRAINING, text))
            others = [one for one, key in zip(examples, keys, strict=True) if key not in training]
            found.append(_near_duplicates(others, trained, len(examples)))
        else:
            training, trained = set(keys), examples
        reports[split] = SplitReport(len(examples), found)
    return reports


def _near_duplicates(examples, training, total) -> Finding:
    """Returns how many examples nearly equal one of training, but do not equal one."""
    rows = list(map(_joined, examples))
    near = list(itertools.compress(rows, near_texts(rows, map(_joined, training))))
    text = f"{len(near):,} of the {total:,} examples differ from one of training only in numbers, "
    text += "punctuation or a word"
    if near:
        text += f", such as `{shortened(one_line(near[0]), _SHOWN_TEXT)}`"
    return Finding(len(near) <= _MOST_NEAR * total, "near-duplicates", text)


def near_equal(names: Iterable[str]) -> list[list[str]]:
    """Groups names that differ in case, spaces, hyphens, a decimal point or invisibly, sorted.

    Examples: `pos`, `POS` and ` pos`; `not spam` and `not_spam`; `1` and `1.0`.
    """
    groups = collections.defaultdict(list)
    for name in sorted(names):
        number = _WHOLE_NUMBER.fullmatch(name)
        groups[number[1] if number else _SIGNS.sub("", normalised(name))].append(name)
    return sorted(group for group in groups.values() if len(group) > 1)


def _texts_of(example) -> tuple[str, ...]:
    return (*row_of(example), *getattr(example, "options", ()))


def _joined(example) -> str:
    return " ".join(_texts_of(example))


def _labels_of(example) -> tuple[str, ...]:
    """Returns the names that are counted as labels of an example."""
    if isinstance(example, QuestionExample):
        return ("answerable",) if example.answers else ("unanswerable",)
    if isinstance(example, TaggedExample):
        return example.tags
    if isinstance(example, ChoiceExample):
        return (chr(ord("A") + example.label),)
    labels = example.label if isinstance(example.label, tuple) else (example.label,)
    return tuple(label for label in labels if isinstance(label, str))


def count_labels(task: Task, examples: Iterable[Any]) -> Counter[str]:
    """Counts the labels of examples; one of the task that is absent counts 0."""
    labels = Counter(dict.fromkeys(task.labels, 0))
    labels.update(itertools.chain.from_iterable(map(_labels_of, examples)))
    return labels


def _truth_of(example) -> str:
    """Returns what an example says about its texts."""
    if isinstance(example, ChoiceExample):
        return example.options[example.label]
    if not hasattr(example, "label"):  # of a question, as annotators often choose different spans
        return " ".join(_labels_of(example))
    label = example.label
    return ", ".join(map(str, label)) if isinstance(label, tuple) else f"{label}"


def _label_findings(task, examples, is_training) -> Iterator[Finding]:
    if not is_training and (caution := count_caution(len(examples), task.metric)):
        yield Finding(False, "number", caution)
    scores = [getattr(one, "label", None) for one in examples]
    if scores and all(isinstance(one, float) for one in np.ravel(scores[0]).tolist() or [None]):
        columns = np.array(scores).reshape(len(scores), -1).T
        for name, column in zip(task.labels or [""], columns, strict=True):
            yield from score_findings(f"scores {name}".strip(), column)
    labels = count_labels(task, examples)
    if not labels.total():
        return
    total = len(examples) if task.has_several_labels else labels.total()
    shown = [f"{name} {count:,} ({percent(count / total)})" for name, count in labels.most_common()]
    text = ", ".join(shown[:_LABELS_SHOWN])
    if len(shown) > _LABELS_SHOWN:
        text += f" and {len(shown) - _LABELS_SHOWN} more"
    is_good = None
    if is_training and task.labels:
        groups = {"": [name for name, count in labels.items() if count < _LEAST_OF_A_CLASS]}
        if task.has_several_labels:
            most = total - _LEAST_OF_A_CLASS
            groups["without "] = [name for name, count in labels.items() if count > most]
        for which, rare in groups.items():
            if rare:
                is_good = False
                names = ", ".join(f"`{name}`" for name in rare[:_LABELS_SHOWN])
                text += (
                    f". There are fewer than {_LEAST_OF_A_CLASS} examples {which or 'of '}{names}"
                )
    yield Finding(is_good, "labels", text)
    if is_training:
        yield from _joined_names(task, examples, labels)
        yield from task.findings(examples, labels)
    similar = near_equal(labels) if is_training and task.labels else []
    if similar:
        groups = "; ".join(" and ".join(f"`{name}`" for name in group) for group in similar)
        text = f"{groups} count as different, but may be the same"
        yield Finding(False, "similar labels", text)


def _joined_names(task, examples, labels) -> Iterator[Finding]:
    """Yields a warning about names that seem to be several ones with another sign between them."""
    sign, text = task.config.label_separator, ""
    joined = [name for name in labels if are_several(name, labels)]
    if task.kind == "classification" and joined:
        text = f"`{joined[0]}` seems to be several, as do {len(joined)} of {len(labels)} classes: "
        text += "`label_separator` makes labels of them"
    if sign is not None and all(len(one.label) < 2 for one in examples):
        text = f"no example has several: is `{sign}` between them?"
    if text:
        yield Finding(False, "several labels", text)


def _token_findings(task, examples, tokenizer) -> list[Finding]:
    features, longest = task.features(examples, tokenizer), task.max_seq_length
    if task.uses_windows:
        lengths = features.lengths
        text = f"{len(examples):,} examples take {len(features):,} rows of {longest} tokens"
        rows = Finding(None, "windows", text)
    else:
        lengths = features.lengths + features.dropped_tokens
        share = np.count_nonzero(features.dropped_tokens) / max(len(examples), 1)
        text = f"{percent(share)} of the examples are longer than {longest} tokens"
        if share > _MOST_TOO_LONG:
            text += ": what exceeds this length is not read"
        rows = Finding(share <= _MOST_TOO_LONG, "truncated", text)
    half, most, every = np.quantile(lengths, [0.5, 0.95, 1], method="higher")
    text = f"median {half:,}, 95 % at most {most:,}, all at most {every:,}"
    found = [Finding(None, "tokens per row", text), rows]
    if answers := [answer.text for one in examples for answer in getattr(one, "answers", ())]:
        _, counts = tokenizer.encode_sentences(answers)
        meaning = ("so the model can never give them", "allows all")
        found.append(_too_long("answers", counts, task.config, "max_answer_length", *meaning))
    if isinstance(next(iter(examples), None), QuestionExample):
        counts = task.config.max_query_length + features.dropped_tokens
        meaning = ("after which they are not read", "reads all")
        found.append(_too_long("questions", counts, task.config, "max_query_length", *meaning))
    return [*found, _unknown_tokens(examples, tokenizer)]


def _too_long(name, counts, config, setting, meaning, remedy) -> Finding:
    """Returns how many answers or questions have more tokens than a setting allows."""
    longest = getattr(config, setting)
    num_long = int(np.count_nonzero(counts > longest))
    text = f"{num_long:,} of {len(counts):,} are longer than `{setting}`, {longest} tokens"
    if num_long:
        text += f", {meaning}: `task.{setting}={int(max(counts))}` {remedy}"
    return Finding(not num_long, name, text)


def _unknown_tokens(examples, tokenizer) -> Finding:
    texts = list(dict.fromkeys(itertools.chain.from_iterable(map(_texts_of, examples))))
    ids, counts = tokenizer.encode_sentences(texts)
    is_unknown = ids == tokenizer.unk_id
    share = float(is_unknown.mean()) if len(ids) else 0.0
    text = percent(share, 2)
    with_unknown = np.unique(np.repeat(np.arange(len(texts)), counts)[is_unknown])
    characters = Counter(itertools.chain.from_iterable(texts[number] for number in with_unknown))
    if unknown := tokenizer.unknown_characters(characters, _UNKNOWN_SHOWN):
        text += f"; most frequent characters: {' '.join(character for character, _ in unknown)}"
    if share > _MOST_UNKNOWN:
        text += f". {tokenizer.remedy(unknown)}"
    return Finding(share <= _MOST_UNKNOWN, "unknown tokens", text)


def _repetitions(examples, keys) -> Iterator[Finding]:
    """Yields how many examples equal an earlier one, and how many of them with another label."""
    groups = collections.defaultdict(list)
    for example, key in zip(examples, keys, strict=True):
        groups[key].append(example)
    repeated = len(examples) - len(groups)
    share = repeated / max(len(examples), 1)
    yield Finding(
        share <= _MOST_REPEATED,
        "repeated",
        f"{percent(share)} of the examples ({repeated:,}) equal an earlier one, apart from case, "
        "white space and Unicode form",
    )
    details = []
    for same in groups.values():
        truths = Counter(map(_truth_of, same)).most_common() if len(same) > 1 else ()
        if len(truths) > 1:
            labels = ", ".join(f"`{label[:_SHOWN_TEXT]}` ({count})" for label, count in truths)
            text = " | ".join(map(one_line, _texts_of(same[0])))
            details.append(f"{labels}: {shortened(text, _SHOWN_TEXT)}")
    yield Finding(
        len(details) <= _MOST_CONFLICTS * len(examples),
        "contradictory",
        f"examples that occur with different labels: {len(details):,}",
        tuple(details[:_CONFLICTS_SHOWN]),
    )
