"""The results of a study: means over seeds, their spread, and which differences are noise."""

import math
import statistics
from typing import Any, NamedTuple

from albert_keras.research.study.config import HeldOutSet, Measure
from albert_keras.research.study.planned import PlannedStudy

#: Normal quantile of a 95 % interval.
_Z = 1.96


class Cell(NamedTuple):
    """The score of a run over its seeds."""

    values: tuple[float, ...]  # by seed
    count: int  # predictions or records that were scored

    @property
    def mean(self) -> float:
        """float. Mean over the seeds."""
        return statistics.fmean(self.values)

    @property
    def spread(self) -> float | None:
        """float or None. Standard deviation over the seeds; None for a single one."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None


class Column(NamedTuple):
    """A score of all runs.

    Attributes:
        name: str. Key of the evaluation.
        title: str. Heading.
        cells: dict of name of a run -> Cell, or None if the run has no such score.
        floor: float or None. Accuracy of the best constant guess.
        is_sentence: bool. Whether it is the accuracy of a sentence task.
    """

    name: str
    title: str
    cells: dict[str, Cell | None]
    floor: float | None
    is_sentence: bool = False

    def difference(self, run: str, other: str) -> float | None:
        """Returns by how much the mean of a run exceeds the mean of another run."""
        ours, theirs = self.cells.get(run), self.cells.get(other)
        return None if ours is None or theirs is None else ours.mean - theirs.mean

    def margin(self, run: str, other: str) -> float | None:
        """Returns the 95 % margin of the difference of two runs; None if a score is missing.

        It adds two variances: the variance between seeds, estimated from all runs with several
        seeds together, with the quantile of Student's t; and the binomial variance between
        held-out texts of the same size. With one seed only the second variance is known.
        """
        cells = [cell for cell in (self.cells.get(run), self.cells.get(other)) if cell is not None]
        if len(cells) < 2:
            return None
        variance = _Z**2 * math.fsum(cell.mean * (1 - cell.mean) / cell.count for cell in cells)
        pooled, freedom = self._seed_variance()
        if freedom:
            from scipy.stats import t

            seeds = pooled * math.fsum(1 / len(cell.values) for cell in cells)
            variance += float(t.ppf(0.975, freedom)) ** 2 * seeds
        return math.sqrt(variance)

    def is_noise(self, run: str, other: str) -> bool | None:
        """Returns whether two runs differ by no more than the noise; None if a score is missing."""
        difference, margin = self.difference(run, other), self.margin(run, other)
        return None if difference is None or margin is None else abs(difference) <= margin

    def _seed_variance(self):
        """Returns the variance between seeds over all runs, and its degrees of freedom."""
        cells = [cell for cell in self.cells.values() if cell is not None and cell.spread]
        freedom = sum(len(cell.values) - 1 for cell in self.cells.values() if cell is not None)
        squares = (cell.spread**2 * (len(cell.values) - 1) for cell in cells)
        return (math.fsum(squares) / freedom if freedom else 0.0), freedom


class Findings(NamedTuple):
    """What the results of a study say."""

    columns: list[Column]  # accuracies
    results: dict[str, list[dict[str, Any]]]  # of trainings that did not diverge, by run
    diverged: list[str]


def findings_of(planned: PlannedStudy, results: dict[tuple[str, int], dict[str, Any]]) -> Findings:
    """Collects the results by run; `results` has one for each run and seed."""
    finished: dict[str, list[dict[str, Any]]] = {run.name: [] for run in planned.runs}
    diverged = []
    for (name, seed), result in results.items():
        if result["diverged_at"] is not None:
            diverged.append(f"{name}, seed {seed}, at update {result['diverged_at']:,}")
        else:
            finished[name].append(result)
    evaluate = planned.study.evaluate
    columns = [column_of(name, held_out, finished) for name, held_out in evaluate.items()]
    return Findings(columns, finished, diverged)


def column_of(name: str, held_out: HeldOutSet, results: dict[str, list[dict[str, Any]]]) -> Column:
    """Returns a column of accuracies from the results of the runs, by name and seed."""
    is_sentence = held_out.score == "sentence"
    key, count = (
        ("sentence_accuracy", "sentences") if is_sentence else ("masked_lm_accuracy", "predictions")
    )
    floors = [
        result["scores"][name]["chance" if is_sentence else "constant_guess"]
        for seeds in results.values()
        for result in seeds
        if name in result["scores"]
    ]
    cells: dict[str, Cell | None] = dict.fromkeys(results)
    for run, seeds in results.items():
        found = [result["scores"][name] for result in seeds if name in result["scores"]]
        if values := tuple(scores[key] for scores in found if scores[key] is not None):
            cells[run] = Cell(values, found[0][count])
    return Column(name, held_out.title, cells, floors[-1] if floors else None, is_sentence)


def count_in_order(
    column: Column, measure: Measure, published: dict[str, float]
) -> tuple[int, int]:
    """Counts the pairs of runs that are in the published order, and the pairs that are compared.

    Compared are pairs that differ by more than the noise here, and in the publication.
    """
    names, agreeing, pairs = [name for name in column.cells if name in published], 0, 0
    for number, run in enumerate(names):
        for other in names[:number]:
            theirs = published[run] - published[other]
            theirs = theirs if measure.higher_is_better else -theirs
            if column.is_noise(run, other) is False and theirs != 0:
                pairs += 1
                agreeing += (column.difference(run, other) > 0) == (theirs > 0)
    return agreeing, pairs
