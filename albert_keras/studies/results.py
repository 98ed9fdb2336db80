"""The results of a study: means over seeds, their spread, and which differences are noise."""

import math
from typing import Any, NamedTuple

from albert_keras.studies.config import HeldOutSet

#: Normal quantile of a 95 % interval.
_Z = 1.96


class Cell(NamedTuple):
    """The score of a run over its seeds."""

    values: tuple[float, ...]  # by seed
    count: int  # predictions or records that were scored

    @property
    def mean(self) -> float:
        """float. Mean over the seeds."""
        return math.fsum(self.values) / len(self.values)

    @property
    def spread(self) -> float | None:
        """float or None. Standard deviation over the seeds; None for a single one."""
        if len(self.values) < 2:
            return None
        squares = math.fsum((value - self.mean) ** 2 for value in self.values)
        return math.sqrt(squares / (len(self.values) - 1))


class Column(NamedTuple):
    """A score of all runs.

    Attributes:
        name: str. Key of the evaluation.
        title: str. Heading.
        cells: dict of name of a run -> Cell, or None if the run has no such score.
        floor: float or None. Accuracy of the best constant guess.
    """

    name: str
    title: str
    cells: dict[str, Cell | None]
    floor: float | None

    def difference(self, run: str, other: str) -> float | None:
        """Returns by how much the mean of a run exceeds the mean of another run."""
        ours, theirs = self.cells.get(run), self.cells.get(other)
        return None if ours is None or theirs is None else ours.mean - theirs.mean

    def noise(self, run: str, other: str) -> float | None:
        """Returns the 95 % margin of the difference of two runs; None if a score is missing.

        It adds two variances: the variance between seeds, estimated from all runs with several
        seeds together, with the quantile of Student's t; and the binomial variance between
        held-out texts of the same size. With one seed only the second variance is known.
        """
        return self._margin(run, other)

    def margin(self, run: str) -> float | None:
        """Returns the 95 % margin of the score of one run, as in `noise`; None if it is missing."""
        return self._margin(run)

    def _margin(self, *runs):
        cells = [self.cells.get(run) for run in runs]
        if None in cells:
            return None
        text = [cell.mean * (1 - cell.mean) / cell.count for cell in cells]
        variance = _Z**2 * math.fsum(text)
        pooled, freedom = self._seed_variance()
        if freedom:
            from scipy.stats import t

            seeds = pooled * math.fsum(1 / len(cell.values) for cell in cells)
            variance += float(t.ppf(0.975, freedom)) ** 2 * seeds
        return math.sqrt(variance)

    def is_noise(self, run: str, other: str) -> bool | None:
        """Returns whether two runs differ by no more than the noise; None if a score is missing."""
        difference, noise = self.difference(run, other), self.noise(run, other)
        return None if difference is None or noise is None else abs(difference) <= noise

    def _seed_variance(self):
        """Returns the variance between seeds over all runs, and its degrees of freedom."""
        cells = [cell for cell in self.cells.values() if cell is not None]
        freedom = sum(len(cell.values) - 1 for cell in cells)
        if not freedom:
            return 0.0, 0
        squares = (
            cell.spread**2 * (len(cell.values) - 1) for cell in cells if cell.spread is not None
        )
        return math.fsum(squares) / freedom, freedom


class Order(NamedTuple):
    """How many pairs of runs are in the published order, among those that differ in both."""

    measure: str  # title of the published column
    column: str  # title of ours
    agreeing: int
    pairs: int  # that differ by more than the noise here, and in the publication


def column_of(name: str, held_out: HeldOutSet, results: dict[str, list[dict[str, Any]]]) -> Column:
    """Returns a column of accuracies from the results of the runs, by name and seed."""
    is_sentence = held_out.score == "sentence"
    key, count = (
        ("sentence_accuracy", "sentences") if is_sentence else ("masked_lm_accuracy", "predictions")
    )
    cells: dict[str, Cell | None] = {}
    floor = None
    for run, seeds in results.items():
        found = [result["scores"][name] for result in seeds if name in result["scores"]]
        values = tuple(scores[key] for scores in found if scores[key] is not None)
        cells[run] = Cell(values, found[0][count]) if values else None
        if found:
            floor = found[0]["chance" if is_sentence else "constant_guess"]
    return Column(name, held_out.title, cells, floor)


def order_of(column: Column, measure: Any, published: dict[str, float]) -> Order:
    """Compares the order of the runs with a published one.

    Args:
        measure: Measure.
        published: By the name of the run.
    """
    names, agreeing, pairs = [name for name in column.cells if name in published], 0, 0
    for number, run in enumerate(names):
        for other in names[:number]:
            theirs = published[run] - published[other]
            theirs = theirs if measure.higher_is_better else -theirs
            if column.is_noise(run, other) is False and theirs != 0:
                pairs += 1
                agreeing += (column.difference(run, other) > 0) == (theirs > 0)
    return Order(measure.title, column.title, agreeing, pairs)
