"""The result of a fine-tuning as lines of text."""

import statistics
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from albert_keras.report import table
from albert_keras.runs.trained_data import ROWS, Overlap
from albert_keras.tasks.kinds import KINDS, TAGGING
from albert_keras.tasks.metrics import Interval, count_caution, shown_metric
from albert_keras.tasks.results import FinetuneResult

#: Metrics of numbers instead of classes.
_OF_NUMBERS = ("pearson", "spearman", "mean_squared_error")
#: The main metric of several labels for each text.
_OF_LABELS = "micro_f1"
_BAG_OF_WORDS = "bag of words"
MOST_FREQUENT_TAG = "most frequent tag of each word"


class Row(NamedTuple):
    """A score in a table, formatted."""

    split: str
    name: str
    score: str
    interval: str  # 95 % interval, or ""
    difference: str  # of the model to this baseline, or ""


class _Baseline(NamedTuple):
    name: str
    score: float
    interval: Interval | None


def lines(result: FinetuneResult) -> list[str]:
    """Describes a result: the main metric of each split, and below it its baselines.

    Before that, if there are several seeds, a row for each. Warnings come last.
    """
    shown = _seed_rows(result) if len(result.seeds) > 1 else []
    for split in _splits(result):
        differences = [
            (row.name, row.score, f"difference {row.difference}")
            for row in rows(result)
            if row.split == split and row.difference
        ]
        shown += [_headline(result, split), *table((), differences)]
        shown += _other_metrics(result, split)
    if result.tuned:
        tuned = ", ".join(f"{name} {value:.3g}" for name, value in result.tuned.items())
        shown.append(f"tuned: {tuned}")
    return shown + [f"warning: {warning}" for warning in cautions(result)]


def rows(result: FinetuneResult) -> list[Row]:
    """Returns the main score of each split, the median of all seeds, followed by its baselines."""
    number, found = formatter(result.task), []
    for split in _splits(result):
        ours, is_first = _median(result, split), split == _splits(result)[0]
        count = len(result.seeds)
        name = "this model" if count == 1 else f"this model, median of {count} seeds"
        bounds = result.seeds[0].interval if count == 1 and is_first else None
        found.append(Row(split, name, number(ours), _shown(number, bounds), ""))
        for name, score, bounds in _baselines(result, split):
            interval = _shown(number, bounds if is_first else None)
            difference = ("+" if ours >= score else "-") + number(abs(ours - score))
            found.append(Row(split, name, number(score), interval, difference))
    return found


def cautions(result: FinetuneResult) -> list[str]:
    """Returns the warnings about a result."""
    found = []
    for split, fields in result.overlap.items():
        overlap = Overlap.of(fields)
        sentence = overlap.sentence(ROWS, f" of {split}")
        if overlap.is_total:
            found.append(f"{sentence}: these are training scores")
        elif overlap.normalised and not overlap.is_small:
            found.append(f"{sentence}: these are not held-out scores")
    count = result.examples.get(_splits(result)[0])
    if count and (caution := count_caution(count, result.metric)):
        found.append(caution)
    for seed in result.seeds:
        if seed.collapse:
            found.append(
                f"seed {seed.seed} collapsed: {seed.collapse}. A lower learning rate or more "
                "warm-up usually helps."
            )
    if result.random and result.random.collapse:
        found.append(
            f"the same model from random weights collapsed: {result.random.collapse}. A comparison "
            "with it is not meaningful."
        )
    return [*found, *_baseline_cautions(result)]


def _splits(result) -> list[str]:
    """Returns the names of the splits; the first one determined the best step."""
    return list(result.seeds[0].scores)


def formatter(task: str) -> Callable[[float], str]:
    """Returns a function that formats a score: of SQuAD in percent, with fewer digits."""
    names = (kind.official_tasks for kind in KINDS.values() if kind.finds_spans)
    digits = 1 if any(task in each for each in names) else 3
    return lambda value: f"{value:.{digits}f}"


def _shown(number, interval):
    return f"[{number(interval[0])}, {number(interval[1])}]" if interval else ""


def _median(result, split, metric=None) -> float:
    return statistics.median(seed.scores[split][metric or result.metric] for seed in result.seeds)


def _step(seed):
    early = ", stopped early" if seed.stopped_early else ""
    return f"step {seed.best_step:,} of {seed.last_step:,}{early}"


def _headline(result, split):
    number, splits, scores = formatter(result.task), _splits(result), result.seeds[0].scores[split]
    prefix = f"{split}: " if len(splits) > 1 else ""
    count = result.examples.get(split) or scores.get("total")
    examples = f" on {count:,.0f} example{'' if count == 1 else 's'}" if count else ""
    if len(result.seeds) > 1:
        values = [seed.scores[split][result.metric] for seed in result.seeds]
        collapsed = sum(1 for seed in result.seeds if seed.collapse)
        return (
            f"{prefix}{result.metric} median {number(statistics.median(values))}, "
            f"{number(min(values))} to {number(max(values))} over {len(values)} seeds"
            f"{f' ({collapsed} collapsed)' if collapsed else ''}{examples} "
            f"(standard deviation {number(statistics.stdev(values))})"
        )
    line, [seed] = f"{prefix}{result.metric} {number(scores[result.metric])}", result.seeds
    if split == splits[0]:
        return f"{line} {_shown(number, seed.interval)}{examples} (best at {_step(seed)})"
    return line + examples


def _seed_rows(result):
    """Returns a header and a row for each seed."""
    number, splits = formatter(result.task), _splits(result)
    names = splits if len(splits) > 1 else [result.metric]
    cells = [["seed", names[0], "95 % interval", *names[1:], "best at"]]
    for seed in result.seeds:
        first, *others = (number(seed.scores[split][result.metric]) for split in splits)
        step = _step(seed) + (", collapsed" if seed.collapse else "")
        cells.append([str(seed.seed), first, _shown(number, seed.interval), *others, step])
    return table((), cells, left=(-1,), indent=0)


def other_scores(
    scores: Mapping[str, float],
    metric: str,
    positive_class: str | None,
    number: Callable[[float], str],
) -> list[str]:
    """Returns the scores besides the main one with their names; counts without a fraction."""
    return [
        f"{name} {value:,.0f}"
        if name.endswith("_total")
        else f"{shown_metric(name, positive_class)} {number(value)}"
        for name, value in scores.items()
        if name not in (metric, "total")
    ]


def _other_metrics(result, split):
    medians = {name: _median(result, split, name) for name in result.seeds[0].scores[split]}
    shown = other_scores(medians, result.metric, result.positive_class, formatter(result.task))
    title = "medians of" if len(result.seeds) > 1 else "also"
    return [f"  {title} {', '.join(shown)}"] if shown else []


def _baselines(result, split) -> Iterator[_Baseline]:
    """Yields the baselines that were scored on a split."""
    majority, random, words = result.majority, result.random, result.bag_of_words
    if majority and split in majority:
        is_number = result.metric in _OF_NUMBERS
        name = "mean of the training scores" if is_number else "majority class"
        if result.metric == _OF_LABELS:
            name = "labels that most training rows have"
        if result.task in TAGGING.own_tasks:
            name = MOST_FREQUENT_TAG
        yield _Baseline(name, majority[split][result.metric], None)
    if words and split in words.scores:
        yield _Baseline(_BAG_OF_WORDS, words.scores[split][result.metric], words.interval)
    for name, scores in result.baselines.items():
        yield _Baseline(name, scores[split][result.metric], None)
    if random and split in random.scores:
        name = "same model from random weights"
        yield _Baseline(name, random.scores[split][result.metric], random.interval)


def _baseline_cautions(result):
    number, splits = formatter(result.task), _splits(result)
    help = "more pre-training, more epochs or another learning rate may help"
    advice = {
        _BAG_OF_WORDS: ". Counts of words and word pairs predict at least as well as this "
        f"model: {help}",
        MOST_FREQUENT_TAG: ". A list of the words of the training file tags at least as well "
        f"as this model, which has learned nothing of the words around them: {help}",
    }
    for split in splits:
        suffix = f" on {split}" if len(splits) > 1 else ""
        for name, score, theirs in _baselines(result, split):
            ours = _median(result, split)
            if ours <= score:
                yield (
                    f"no better than the {name}{suffix}: {result.metric} {number(ours)} versus "
                    f"{number(score)}{advice.get(name, '')}"
                )
            elif split == splits[0]:
                # Other development examples might reverse the lead of the median seed.
                ordered = sorted(result.seeds, key=lambda seed: seed.scores[split][result.metric])
                bounds = ordered[(len(ordered) - 1) // 2].interval
                if bounds[0] <= (theirs[1] if theirs else score):
                    reason = f"{number(score)} is within {_shown(number, bounds)}"
                    if theirs:
                        both = f"{_shown(number, bounds)} and {_shown(number, theirs)}"
                        reason = f"the intervals {both} overlap"
                    yield f"the lead over the {name} may be due to chance: {reason}"
