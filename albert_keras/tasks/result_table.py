"""The result of a fine-tuning as lines of text."""

import textwrap
from typing import NamedTuple

from albert_keras.report import table
from albert_keras.runs.trained_data import ROWS, Overlap
from albert_keras.tasks.kinds import KINDS, TAGGING
from albert_keras.tasks.metrics import count_caution, interval_caution, shown_metric
from albert_keras.tasks.results import FinetuneResult, best_seed, spread

#: Metrics of numbers instead of classes.
_OF_NUMBERS = ("pearson", "spearman", "mean_squared_error")
#: The main metric of several labels for each text.
_OF_LABELS = "micro_f1"
_BAG_OF_WORDS = "bag of words"
MOST_FREQUENT_TAG = "most frequent tag of each word"
_WIDTH, _STEPS_SHOWN = 100, 3


def lines(result: FinetuneResult) -> list[str]:
    """Describes a result: the main metric of each split, and below it its baselines.

    Before that, if there are several seeds, a row for each. Notes and warnings come last.
    """
    table = _ResultTable(result)
    shown = table.seed_rows() if len(result.seeds) > 1 else []
    for split in table.splits:
        shown += [table.headline(split), *table.comparisons(split), *table.other_metrics(split)]
    if result.tuned:
        tuned = ", ".join(f"{name} {value:.3g}" for name, value in result.tuned.items())
        shown.append(f"tuned: {tuned}")
    shown += [f"note: {note}" for note in table.notes()]
    return shown + [f"warning: {warning}" for warning in table.warnings()]


class Row(NamedTuple):
    """A score in a table, formatted."""

    split: str
    name: str
    score: str
    interval: str  # 95 % interval, or ""
    difference: str  # of the model to this baseline, or ""


def rows(result: FinetuneResult) -> list[Row]:
    """Returns the main score of each split, the median of all seeds, followed by its baselines."""
    table, found = _ResultTable(result), []
    for split in table.splits:
        ours, is_first = table.spread(split).median, split == table.splits[0]
        count = len(table.seeds)
        name = "this model" if count == 1 else f"this model, median of {count} seeds"
        interval = table.interval(table.seeds[0].interval) if count == 1 and is_first else ""
        found.append(Row(split, name, table.number(ours), interval, ""))
        for name, score, bounds in table.baselines(split):
            interval = table.interval(bounds) if bounds and is_first else ""
            difference = f"{ours - score:+.{table.digits}f}"
            found.append(Row(split, name, table.number(score), interval, difference))
    return found


def cautions(result: FinetuneResult) -> list[str]:
    """Returns the notes and warnings of a result."""
    found = _ResultTable(result)
    return [*found.notes(), *found.warnings()]


class _ResultTable:
    def __init__(self, result):
        self.result, self.metric, self.seeds = result, result.metric, result.seeds
        self.splits = list(result.seeds[0].scores)  # the first one determines the best step
        percent = (kind.official_tasks for kind in KINDS.values() if kind.finds_spans)
        self.digits = 1 if any(result.task in names for names in percent) else 3

    def headline(self, split):
        prefix = f"{split}: " if len(self.splits) > 1 else ""
        scores = self.seeds[0].scores[split]
        count = self.result.examples.get(split) or scores.get("total")
        examples = f" on {count:,.0f} example{'' if count == 1 else 's'}" if count else ""
        if len(self.seeds) > 1:
            over = self.spread(split)
            collapsed = sum(1 for seed in self.seeds if seed.collapse)
            return (
                f"{prefix}{self.metric} median {self.number(over.median)}, "
                f"{self.number(over.minimum)} to {self.number(over.maximum)} over {over.count} "
                f"seeds{f' ({collapsed} collapsed)' if collapsed else ''}{examples} "
                f"(standard deviation {self.number(over.standard_deviation)})"
            )
        seed = self.seeds[0]
        line = f"{prefix}{self.metric} {self.number(scores[self.metric])}"
        if split == self.splits[0]:
            return f"{line} {self.interval(seed.interval)}{examples} (best at {_step(seed)})"
        return line + examples

    def seed_rows(self):
        """Returns a header and a row for each seed."""
        names = self.splits if len(self.splits) > 1 else [self.metric]
        rows = [["seed", names[0], "95 % interval", *names[1:], "best at"]]
        for seed in self.seeds:
            first, *others = (self.number(seed.scores[name][self.metric]) for name in self.splits)
            step = _step(seed) + (", collapsed" if seed.collapse else "")
            rows.append([str(seed.seed), first, self.interval(seed.interval), *others, step])
        return table((), rows, left=(-1,), indent=0)

    def comparisons(self, split):
        """Returns a line for each baseline, with names, scores and differences in columns."""
        rows = []
        for name, score, _ in self.baselines(split):
            difference = self.spread(split).median - score
            shown = f"difference {difference:+.{self.digits}f}"
            rows.append((name, self.number(score), shown))
        return table((), rows)

    def other_metrics(self, split):
        shown = []
        for name in self.seeds[0].scores[split]:
            if name in (self.metric, "total"):
                continue
            value = self.spread(split, name).median
            name = shown_metric(name, self.result.positive_class)
            if name.endswith("_total"):
                shown.append(f"{name} {value:,.0f}")
            elif name.endswith("_thresh"):
                shown.append(f"{name} {value:.3g}")
            else:
                shown.append(f"{name} {self.number(value)}")
        title = "medians of" if len(self.seeds) > 1 else "also"
        # Non-breaking spaces keep names and values on one line.
        text = f"  {title} " + ", ".join(shown).replace(" ", "\xa0").replace(",\xa0", ", ")
        wrapped = textwrap.wrap(text, _WIDTH, subsequent_indent="    ", break_on_hyphens=False)
        return [line.replace("\xa0", " ") for line in wrapped] if shown else []

    def notes(self):
        """Yields which of several equal scores counts."""
        for seed in self.seeds:
            if seed.tied_steps:
                steps = [f"{step:,}" for step in (*seed.tied_steps, seed.best_step)]
                if len(steps) > _STEPS_SHOWN + 1:
                    steps[1:-_STEPS_SHOWN] = ["..."]
                name = f"seed {seed.seed}: " if len(self.seeds) > 1 else ""
                yield (
                    f"{name}{len(seed.tied_steps) + 1} evaluations have the best {self.metric} "
                    f"(steps {', '.join(steps)}); the weights of the newest are used"
                )
        best, split = best_seed(self.result), self.splits[0]
        score = best.scores[split][self.metric]
        equal = [str(one.seed) for one in self.seeds if one.scores[split][self.metric] == score]
        if len(equal) > 1:
            yield (
                f"seeds {', '.join(equal)} have the same {self.metric}, {self.number(score)}; the "
                f"files and `predict` use the first, {best.seed}"
            )

    def warnings(self):
        for split, fields in self.result.overlap.items():
            overlap = Overlap.of(fields)
            sentence = overlap.sentence(ROWS, f" of {split}")
            if overlap.is_total:
                yield f"{sentence}: these are training scores"
            elif overlap.normalised and not overlap.is_small:
                yield (
                    f"{sentence}: these are not held-out scores. `albert-keras evaluate` also "
                    "scores the other rows separately"
                )
        count = self.result.examples.get(self.splits[0])
        if count and (caution := count_caution(count, self.metric)):
            yield caution
        for seed in self.seeds:
            caution = count and interval_caution(self.metric, seed.interval, count)
            if caution:
                yield f"seed {seed.seed}: {caution}" if len(self.seeds) > 1 else caution
        for seed in self.seeds:
            if seed.collapse:
                yield (
                    f"seed {seed.seed} collapsed: {seed.collapse}. A lower learning rate or more "
                    "warm-up usually helps."
                )
        if self.result.random and self.result.random.collapse:
            yield (
                "the same model from random weights collapsed: "
                f"{self.result.random.collapse}. A comparison with it is not meaningful."
            )
        yield from self.baseline_warnings()

    def baseline_warnings(self):
        help = "more pre-training, more epochs or another learning rate may help"
        advice = {
            _BAG_OF_WORDS: ". Counts of words and word pairs predict at least as well as this "
            f"model: {help}",
            MOST_FREQUENT_TAG: ". A list of the words of the training file tags at least as well "
            f"as this model, which has learned nothing of the words around them: {help}",
        }
        for split in self.splits:
            suffix = f" on {split}" if len(self.splits) > 1 else ""
            for name, score, interval in self.baselines(split):
                ours = self.spread(split).median
                if ours <= score:
                    yield (
                        f"no better than the {name}{suffix}: {self.metric} {self.number(ours)} "
                        f"versus {self.number(score)}{advice.get(name, '')}"
                    )
                elif split == self.splits[0]:
                    yield from self.chance(name, score, interval)

    def chance(self, name, score, theirs):
        """Yields a warning if other development examples might reverse the lead over a baseline."""
        ordered = sorted(self.seeds, key=lambda seed: seed.scores[self.splits[0]][self.metric])
        ours = ordered[(len(ordered) - 1) // 2].interval  # of the median seed
        if ours[0] > (theirs[1] if theirs else score):
            return
        reason = f"{self.number(score)} is within {self.interval(ours)}"
        if theirs:
            reason = f"the intervals {self.interval(ours)} and {self.interval(theirs)} overlap"
        yield f"the lead over the {name} may be due to chance: {reason}"

    def baselines(self, split):
        """Yields name, score and interval (or None) of the baselines scored on a split."""
        majority, random = self.result.majority, self.result.random
        words = self.result.bag_of_words
        if majority and split in majority:
            is_number = self.metric in _OF_NUMBERS
            name = "mean of the training scores" if is_number else "majority class"
            if self.metric == _OF_LABELS:
                name = "labels that most training rows have"
            if self.result.task in TAGGING.own_tasks:
                name = MOST_FREQUENT_TAG
            yield name, majority[split][self.metric], None
        if words and split in words.scores:
            yield _BAG_OF_WORDS, words.scores[split][self.metric], words.interval
        for name, scores in self.result.baselines.items():
            yield name, scores[split][self.metric], None
        if random and split in random.scores:
            name = "same model from random weights"
            yield name, random.scores[split][self.metric], random.interval

    def spread(self, split, metric=None):
        return spread(seed.scores[split][metric or self.metric] for seed in self.seeds)

    def number(self, value):
        return f"{value:.{self.digits}f}"

    def interval(self, interval):
        return f"[{self.number(interval[0])}, {self.number(interval[1])}]"


def _step(seed):
    early = ", stopped early" if seed.stopped_early else ""
    return f"step {seed.best_step:,} of {seed.last_step:,}{early}"
