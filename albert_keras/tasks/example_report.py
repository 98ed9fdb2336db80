"""Counts what the examples of a task have: labels, truncated, repeated and contradictory rows.

`finetune` logs the findings, and `albert-keras data check --task` prints them.
"""

import collections
import itertools
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
from albert_keras.tasks.task import Task, one_line
from albert_keras.tasks.task_config import OWN_TASKS
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Beyond these fractions of the examples a finding is a warning.
_MOST_REPEATED, _MOST_CONFLICTS, _MOST_TRUNCATED = 0.01, 0.001, 0.01
_LABELS_SHOWN, _CONFLICTS_SHOWN, _SHOWN_TEXT = 50, 5, 80

#: The finding that `finetune` reports in another way.
IN_TRAINING = "in training"


class SplitReport(NamedTuple):
    """The examples of one split; texts count as equal if they are when `normalised`."""

    examples: int
    findings: list[Finding]  # those about labels and lengths first

    @property
    def warnings(self) -> list[str]:
        return [one.warning for one in self.findings if one.warning]


def report_task(task: Task, tokenizer: Tokenizer | None = None) -> dict[str, SplitReport]:
    """Reads the training and development examples of a task and describes them.

    Development examples are left out if they have no file: an official task may be given a
    training file only. Raises InputError as `Task.read`; see `report_examples` for the rest.
    """
    config = task.config
    has_dev = config.name in OWN_TASKS or config.dev is not None or config.data_dir is not None
    splits = ("train", *(task.dev_splits if has_dev else ()))
    examples = {split: task.read(split) for split in splits}
    return report_examples(task, examples, tokenizer)


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
    reports: dict[str, SplitReport] = {}
    training: set[tuple[str, ...]] | None = None
    for split, examples in splits.items():
        found = list(_label_findings(task, examples))
        if tokenizer is not None and examples:
            every = 1 if most_encoded is None else max(1, -(-len(examples) // most_encoded))
            found += _token_findings(task, examples[::every], tokenizer)
        keys = [tuple(map(normalised, _texts_of(example))) for example in examples]
        found += _repetitions(examples, keys)
        if training is None:
            training = set(keys)
        else:
            count = sum(key in training for key in keys)
            text = f"{count:,} of the {len(examples):,} examples are also training examples"
            found.append(Finding(not count, IN_TRAINING, text))
        reports[split] = SplitReport(len(examples), found)
    return reports


def count_labels(task: Task, examples: Iterable[Any]) -> Counter[str]:
    """Counts the labels of examples; one of the task that is absent counts 0."""
    labels = Counter(dict.fromkeys(task.labels, 0))
    labels.update(itertools.chain.from_iterable(map(_labels_of, examples)))
    return labels


def _texts_of(example) -> tuple[str, ...]:
    return (*row_of(example), *getattr(example, "options", ()))


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


def _truth_of(example) -> str:
    """Returns what an example says about its texts."""
    if isinstance(example, ChoiceExample):
        return example.options[example.label]
    if not hasattr(example, "label"):  # of a question, as annotators often choose different spans
        return " ".join(_labels_of(example))
    label = example.label
    return ", ".join(map(str, label)) if isinstance(label, tuple) else f"{label}"


def _label_findings(task, examples) -> Iterator[Finding]:
    scores = [getattr(one, "label", None) for one in examples]
    if scores and all(isinstance(one, float) for one in np.ravel(scores[0]).tolist() or [None]):
        columns = np.array(scores).reshape(len(scores), -1).T
        for name, column in zip(task.labels or [""], columns, strict=True):
            text = f"min {column.min():.4g}, mean {column.mean():.4g}, max {column.max():.4g}"
            yield Finding(None, f"scores {name}".strip(), text)
    labels = count_labels(task, examples)
    if not labels.total():
        return
    total = len(examples) if task.has_several_labels else labels.total()
    shown = [f"{name} {count:,} ({percent(count / total)})" for name, count in labels.most_common()]
    text = ", ".join(shown[:_LABELS_SHOWN])
    if len(shown) > _LABELS_SHOWN:
        text += f" and {len(shown) - _LABELS_SHOWN} more"
    yield Finding(None, "labels", text)


def _token_findings(task, examples, tokenizer) -> Iterator[Finding]:
    """Yields how many tokens examples have, without special ones, and the share of truncated ones.

    Of several options the longest counts, and of two texts that are compared the longer one.
    """
    parts = {}
    for name, texts in task.columns(examples).items():
        rows = [text if isinstance(text, list) else [text] for text in texts]
        _, counts = tokenizer.encode_sentences(itertools.chain.from_iterable(rows))
        of_rows = np.split(counts, np.cumsum([len(row) for row in rows])[:-1])
        join = max if name == "options" else sum
        parts[name] = np.array([join(one) if len(one) else 0 for one in of_rows])
    columns = np.stack(list(parts.values()))
    lengths = columns.max(axis=0) if task.kind == "similarity" else columns.sum(axis=0)
    half, most, every = np.quantile(lengths, [0.5, 0.95, 1], method="higher")
    text = f"median {half:,}, 95 % at most {most:,}, all at most {every:,}"
    yield Finding(None, "tokens", text)
    part = "are"
    if task.finds_spans:  # passages take several rows
        part = "have a question that is"
        share = np.mean(parts["question"] > task.config.max_query_length)
    elif task.kind == "tagging":
        return
    else:
        num_special = tokenizer.num_special if len(task.fields) > 1 else 2
        share = np.mean(lengths > task.max_seq_length - num_special)
    text = f"{percent(share)} of the examples {part} truncated"
    yield Finding(bool(share <= _MOST_TRUNCATED), "truncated", text)


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
