"""The result of a fine-tuning as lines of text."""

import textwrap
from typing import NamedTuple

from albert_keras.finetuning.results import first_split, spread
from albert_keras.tasks.kinds import KINDS

#: Metrics of numbers instead of classes.
_OF_NUMBERS = ("pearson", "spearman", "mean_squared_error")
_WIDTH = 100


class _Baseline(NamedTuple):
    name: str
    scores: dict
    interval: tuple | None


def lines(result) -> list[str]:
    """Describes a result: scores, baselines beside them, and warnings.

    Args:
        result: FinetuneResult.

    Returns:
        list of str. The main metric of each split, and below it its baselines; before that, if
        there are several seeds, a row for each. Warnings come last.
    """
    in_percent = any(
        kind.finds_spans and result.task in kind.official_tasks for kind in KINDS.values()
    )
    shown = _seed_table(result, in_percent) if len(result.seeds) > 1 else []
    for split in result.seeds[0].scores:
        shown.append(_headline(result, split, in_percent))
        shown += _comparisons(result, split, in_percent)
        shown += _other_metrics(result, split, in_percent)
    if result.tuned:
        tuned = ", ".join(f"{name} {value:.3g}" for name, value in result.tuned.items())
        shown.append(f"tuned: {tuned}")
    return shown + [f"warning: {warning}" for warning in _warnings(result, in_percent)]


def _headline(result, split, in_percent):
    prefix = f"{split}: " if len(result.seeds[0].scores) > 1 else ""
    scores = result.seeds[0].scores[split]
    count = result.examples.get(split) or scores.get("total")
    examples = f" on {count:,.0f} example{'' if count == 1 else 's'}" if count else ""
    if len(result.seeds) > 1:
        over = spread(_main_scores(result, split))
        low, high = (_number(value, in_percent) for value in (over.minimum, over.maximum))
        count = sum(1 for seed in result.seeds if seed.collapse)
        collapsed = f" ({count} collapsed)" if count else ""
        return (
            f"{prefix}{result.metric} median {_number(over.median, in_percent)}, {low} to {high} "
            f"over {over.count} seeds{collapsed}{examples} "
            f"(standard deviation {_number(over.standard_deviation, in_percent)})"
        )
    seed = result.seeds[0]
    line = f"{prefix}{result.metric} {_number(scores[result.metric], in_percent)}"
    if split == first_split(result):
        return f"{line} {_interval(seed.interval, in_percent)}{examples} (best at {_step(seed)})"
    return line + examples


def _seed_table(result, in_percent):
    """Returns a header and a row for each seed."""
    splits = list(result.seeds[0].scores)
    names = splits if len(splits) > 1 else [result.metric]
    rows = [["seed", names[0], "95 % interval", *names[1:], "best at"]]
    for seed in result.seeds:
        first, *others = (_number(seed.scores[name][result.metric], in_percent) for name in splits)
        rows.append([str(seed.seed), first, _interval(seed.interval, in_percent), *others])
        rows[-1].append(_step(seed) + (", collapsed" if seed.collapse else ""))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [*(cell.rjust(width) for cell, width in zip(row, widths[:-1], strict=False)), row[-1]]
        )
        for row in rows
    ]


def _comparisons(result, split, in_percent):
    """Returns a line for each baseline, with names, scores and differences in columns."""
    ours = _median(result, split)
    rows = []
    for baseline in _baselines(result, split):
        score = baseline.scores[result.metric]
        digits = 1 if in_percent else 3
        difference = f"{ours - score:+.{digits}f}"
        rows.append((baseline.name, _number(score, in_percent), difference))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        f"  {name:<{widths[0]}}  {score:>{widths[1]}}  difference {difference:>{widths[2]}}"
        for name, score, difference in rows
    ]


def _other_metrics(result, split, in_percent):
    shown = []
    for name in result.seeds[0].scores[split]:
        if name in (result.metric, "total"):
            continue
        value = spread(seed.scores[split][name] for seed in result.seeds).median
        if name.endswith("_total"):
            shown.append(f"{name} {value:,.0f}")
        elif name.endswith("_thresh"):
            shown.append(f"{name} {value:.3g}")
        else:
            shown.append(f"{name} {_number(value, in_percent)}")
    title = "medians of" if len(result.seeds) > 1 else "also"
    # Non-breaking spaces keep names and values on one line.
    text = f"  {title} " + ", ".join(shown).replace(" ", "\xa0").replace(",\xa0", ", ")
    wrapped = textwrap.wrap(text, _WIDTH, subsequent_indent="    ", break_on_hyphens=False)
    return [line.replace("\xa0", " ") for line in wrapped] if shown else []


def _warnings(result, in_percent):
    for seed in result.seeds:
        if seed.collapse:
            yield (
                f"seed {seed.seed} collapsed: {seed.collapse}. A lower learning rate or more "
                "warm-up usually helps."
            )
    if result.random and result.random.collapse:
        yield (
            f"the same model from random weights collapsed: {result.random.collapse}. The "
            "difference from it says little."
        )
    for split in result.seeds[0].scores:
        suffix = f" on {split}" if len(result.seeds[0].scores) > 1 else ""
        for baseline in _baselines(result, split):
            ours, theirs = _median(result, split), baseline.scores[result.metric]
            if ours <= theirs:
                yield (
                    f"no better than the {baseline.name}{suffix}: {result.metric} "
                    f"{_number(ours, in_percent)} versus {_number(theirs, in_percent)}"
                )
            elif split == first_split(result):
                yield from _chance(result, baseline, in_percent)


def _chance(result, baseline, in_percent):
    """Yields a warning if other development examples might reverse the lead over a baseline."""
    split = first_split(result)
    ordered = sorted(result.seeds, key=lambda seed: seed.scores[split][result.metric])
    ours = ordered[(len(ordered) - 1) // 2].interval  # of the seed in the middle
    score = baseline.scores[result.metric]
    highest = baseline.interval[1] if baseline.interval else score
    if ours[0] > highest:
        return
    if baseline.interval:
        theirs = _interval(baseline.interval, in_percent)
        reason = f"the intervals {_interval(ours, in_percent)} and {theirs} overlap"
    else:
        reason = f"{_number(score, in_percent)} is within {_interval(ours, in_percent)}"
    yield f"the lead over the {baseline.name} may be due to chance: {reason}"


def _baselines(result, split):
    """Returns the baselines that have a score on a split."""
    guess = "mean of the training scores" if result.metric in _OF_NUMBERS else "majority class"
    found = []
    if result.majority and split in result.majority:
        found.append(_Baseline(guess, result.majority[split], None))
    if result.random and split in result.random.scores:
        random = result.random
        name = "same model from random weights"
        found.append(_Baseline(name, random.scores[split], random.interval))
    return found


def _main_scores(result, split):
    return [seed.scores[split][result.metric] for seed in result.seeds]


def _median(result, split):
    return spread(_main_scores(result, split)).median


def _step(seed):
    early = ", stopped early" if seed.stopped_early else ""
    return f"step {seed.best_step:,} of {seed.last_step:,}{early}"


def _number(value, in_percent):
    return f"{value:.1f}" if in_percent else f"{value:.3f}"


def _interval(interval, in_percent):
    low, high = (_number(value, in_percent) for value in interval)
    return f"[{low}, {high}]"
