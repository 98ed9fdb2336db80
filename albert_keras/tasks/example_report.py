"""Describes the examples of a task before anything is trained on them: labels, lengths, faults.

`finetune` logs the short form of the report, and `albert-keras data check --task` prints the long
one; `example_findings.py` has the words of both.
"""

import collections
import hashlib
import itertools
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from albert_keras.tasks.example_parts import inputs_of, labels_of, parts_of, truth_of
from albert_keras.tasks.example_tokens import ExampleTokens, Unknown
from albert_keras.tasks.predictions import one_line
from albert_keras.tasks.task import Task
from albert_keras.tasks.task_config import OWN_TASKS
from data_pipeline.reports.corpus_check import quantiles
from data_pipeline.text.letters import count_words
from data_pipeline.tokenizers.tokenization import Tokenizer

_QUANTILES = {"5%": 0.05, "median": 0.5, "95%": 0.95, "max": 1.0}
_CONFLICTS_SHOWN, _SHOWN_TEXT = 5, 80
_SIGNS = re.compile(r"[\W_]+")


class Conflict(NamedTuple):
    """A text that occurs with different labels."""

    text: str  # its beginning, on one line
    labels: dict[str, int]  # how often each label occurs, the most frequent first


class SplitReport(NamedTuple):
    """The examples of one split."""

    examples: int
    #: How often each class, tag or right option occurs, the most frequent first; for SQuAD how many
    #: questions are "answerable" and "unanswerable". Empty for scores.
    labels: dict[str, int]
    scores: dict[str, float]  # quantiles and mean of the labels of a regression, else empty
    #: For each part of an example, such as "text" and "pair", quantiles of its "characters",
    #: "words" and, with a tokenizer, "tokens".
    lengths: dict[str, dict[str, dict[str, int]]]
    encoded: int  # examples whose tokens were counted: all, a sample, or 0 without a tokenizer
    too_long: int  # encoded examples that are truncated or, with windows, take several rows
    unknown: Unknown | None  # None without a tokenizer
    repeated: int  # examples that equal an earlier one in all but their label
    conflicts: int  # different examples that occur with different labels
    conflicting: list[Conflict]  # the first few of them
    in_training: int | None  # examples that the training examples contain, too; None for these


class ExampleReport(NamedTuple):
    """The examples of a task; texts count as equal if they are when `normalised`."""

    task: str
    kind: str
    metric: str
    max_seq_length: int
    uses_windows: bool  # whether a long text takes several rows and is not truncated
    splits: dict[str, SplitReport]  # "train" first, then those that are scored in training
    near_equal_labels: list[list[str]]  # labels that differ in case, spaces or punctuation only


def report_task(
    task: Task, tokenizer: Tokenizer | None = None, most_encoded: int | None = None
) -> ExampleReport:
    """Reads the training and development examples of a task and describes them.

    Development examples are left out if they have no file: an official task may be given a
    training file only. Raises InputError as `Task.read`; see `report_examples` for the arguments.
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
) -> ExampleReport:
    """Describes examples.

    Args:
        task: Task.
        splits: Labelled examples by the name of their split, the training examples first.
        tokenizer: Tokenizer or None. Without one, tokens are not reported.
        most_encoded: int or None. Number of examples of a split whose tokens are counted, at
            regular distances; None counts all.

    Returns:
        ExampleReport.
    """
    reports, training, names = {}, None, Counter()
    for split, examples in splits.items():
        keys = [_digest(inputs_of(example)) for example in examples]
        in_training = None if training is None else sum(key in training for key in keys)
        training = set(keys) if training is None else training
        labels = Counter(dict.fromkeys(task.labels, 0))  # one that is absent counts 0
        labels.update(itertools.chain.from_iterable(map(labels_of, examples)))
        names.update(+labels)
        every = 1 if most_encoded is None else -(-len(examples) // most_encoded)
        tokens = ExampleTokens(task, examples[:: max(every, 1)], tokenizer) if tokenizer else None
        conflicts = _conflicts(examples, keys)
        reports[split] = SplitReport(
            examples=len(examples),
            labels=dict(sorted(labels.items(), key=lambda pair: -pair[1])),
            scores=_score_quantiles(examples),
            lengths=_lengths(examples, tokens),
            encoded=len(tokens.examples) if tokens else 0,
            too_long=tokens.too_long if tokens else 0,
            unknown=tokens.unknown() if tokens else None,
            repeated=len(keys) - len(set(keys)),
            conflicts=len(conflicts),
            conflicting=conflicts[:_CONFLICTS_SHOWN],
            in_training=in_training,
        )
    return ExampleReport(
        task=task.config.name,
        kind=task.kind.name,
        metric=task.metric,
        max_seq_length=task.max_seq_length,
        uses_windows=task.kind.uses_windows,
        splits=reports,
        near_equal_labels=near_equal(names) if task.labels else [],
    )


def near_equal(names: Iterable[str]) -> list[list[str]]:
    """Groups names that are probably the same: by case, spaces, punctuation, or as numbers.

    Examples: `pos`, `POS` and ` pos`; `not spam` and `not_spam`; `1` and `1.0`. `B-PER` and `I-PER`
    differ. Groups and names are sorted.
    """
    groups = collections.defaultdict(set)
    for name in names:
        plain = unicodedata.normalize("NFKC", name).casefold().strip()
        try:
            key = float(plain)
        except ValueError:
            key = _SIGNS.sub("", plain) or plain
        groups[key].add(name)
    return sorted(sorted(group) for group in groups.values() if len(group) > 1)


def _digest(texts):
    return hashlib.sha256(json.dumps(texts).encode()).digest()[:8]


def _conflicts(examples, keys) -> list[Conflict]:
    """Returns the inputs that occur with different labels, in the order of the examples."""
    repeated = {key for key, count in Counter(keys).items() if count > 1}
    groups = {}
    for example, key in zip(examples, keys, strict=True):
        if key in repeated:
            groups.setdefault(key, (example, Counter()))[1][truth_of(example)] += 1
    conflicts = []
    for example, labels in groups.values():
        if len(labels) > 1:
            texts = [text for texts in parts_of(example).values() for text in texts]
            shown = {label[:_SHOWN_TEXT]: count for label, count in labels.most_common()}
            conflicts.append(Conflict(_shortened(one_line(*texts)), shown))
    return conflicts


def _score_quantiles(examples):
    scores = [one.label for one in examples if isinstance(getattr(one, "label", None), float)]
    if not scores:
        return {}
    low, *others = np.quantile(scores, [0, 0.05, 0.5, 0.95, 1]).tolist()
    named = dict(zip(("5%", "median", "95%", "max"), others, strict=True))
    return {"min": low} | named | {"mean": float(np.mean(scores))}


def _lengths(examples, tokens):
    counts = collections.defaultdict(lambda: collections.defaultdict(Counter))
    for example in examples:
        for name, texts in parts_of(example).items():
            for text in texts:
                counts[name]["characters"][len(text)] += 1
                counts[name]["words"][count_words(text)] += 1
    for name, lengths in (tokens.lengths if tokens else {}).items():
        counts[name]["tokens"] = lengths
    return {
        name: {unit: quantiles(lengths, _QUANTILES) for unit, lengths in units.items()}
        for name, units in counts.items()
    }


def _shortened(text):
    return text if len(text) <= _SHOWN_TEXT else text[: _SHOWN_TEXT - 1] + "…"
