"""What a run was trained on, as digests, so that a training score never passes for a held-out one.

The folder `trained_on` of a run has a file for each data set that its weights were trained on,
including the data sets of the runs that it started from. A file is written whole, and never
changed.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.array_files import read_arrays, write_arrays
from data_pipeline.errors import InputError
from data_pipeline.files import naming, whole_file

logger = logging.getLogger(__name__)

FOLDER = "trained_on"
#: Kinds of digests: of the examples of a task, and of the records of pre-training.
ROWS, RECORDS = "rows", "records"

#: What differs between rows with equal normalised and different exact digests, for messages.
_NORMALISED = {
    ROWS: "case, white space or Unicode form",
    RECORDS: "their masks or the order of their segments",
}


class Digests(NamedTuple):
    """Digests of a data set, 64 bits for each row (example or record).

    Two different rows have an equal digest with a probability of 2^-64: if two data sets with 10^6
    rows each are compared, a row is wrongly found in the other set once in 2 * 10^7 comparisons.
    """

    exact: np.ndarray  # uint64 [K]
    normalised: np.ndarray  # uint64 [K]; equal for rows that differ in `_NORMALISED` only
    count: int  # rows of the data set, N; if K < N, only a sample of K rows has digests
    fingerprint: str  # identifies the data set, as in `run.json`; "" if it is not known


class Overlap(NamedTuple):
    """How many of the rows to score were trained on."""

    rows: int  # to score
    exact: int  # of these, rows that were trained on exactly as they are
    normalised: int  # of these, rows that were trained on, apart from small differences
    is_estimate: bool = False  # whether only a sample of the training data was compared

    @property
    def is_total(self) -> bool:
        """Whether all rows were trained on, so that their score is a training score."""
        return self.normalised == self.rows and not self.is_estimate

    @property
    def is_small(self) -> bool:
        """Whether some, but fewer than 1 %, of the rows were trained on: scores change little."""
        return 0 < self.normalised < self.rows / 100

    @property
    def consequence(self) -> str:
        """What it means for the score that some of the rows were trained on."""
        if self.is_small:
            return "fewer than 1 %, which changes their score little"
        return "their score is not a held-out score"

    def sentence(self, kind: str, what: str = "") -> str:
        """Returns "1,350 of 1,500 rows were trained on", with the exact number if it differs.

        Args:
            kind: `ROWS` or `RECORDS`.
            what: Words that follow the number of rows, such as " of `dev.tsv`".
        """
        if self.is_total:
            subject = f"all {self.rows:,} {kind}" if self.rows > 1 else f"the only {kind[:-1]}"
        else:
            about = "about " if self.is_estimate else ""
            subject = f"{about}{self.normalised:,} of {self.rows:,} {kind}"
        verb = "was" if self.normalised == 1 else "were"
        text = f"{subject}{what} {verb} trained on"
        if self.exact == self.normalised:
            return text
        return f"{text} ({self.exact:,} exactly, the others differ in {_NORMALISED[kind]})"


def log_overlap(overlap: Overlap, sentence: str) -> None:
    """Logs that rows to score were trained on, as `Overlap.sentence` says it, and what it means."""
    level = logging.INFO if overlap.is_small else logging.WARNING
    logger.log(level, "%s: %s.", sentence[0].upper() + sentence[1:], overlap.consequence)


def save_digests(run: Path, kind: str, digests: Digests) -> None:
    """Saves the digests of a data set in the folder of a run, unless they are there already."""
    path = _path(run, kind, digests.fingerprint)
    if path.is_file():
        return
    with naming(path):
        path.parent.mkdir(exist_ok=True)
        with whole_file(path) as temporary:
            write_arrays(temporary, digests._asdict())


def read_digests(run: Path, kind: str) -> tuple[Digests, ...]:
    """Reads the digests of all data sets that a run was trained on; () if there are none.

    Raises:
        InputError: If a file is damaged.
    """
    found = []
    for path in sorted((Path(run) / FOLDER).glob(f"{kind}-*.npz")):
        try:
            arrays = read_arrays(path)
            exact, normalised = (
                np.asarray(arrays[name], np.uint64) for name in ("exact", "normalised")
            )
            count, fingerprint = int(arrays["count"]), str(arrays["fingerprint"])
            if exact.ndim != 1 or exact.shape != normalised.shape or len(exact) > count:
                raise ValueError(f"{exact.shape} and {normalised.shape} digests of {count} rows")
        except (ValueError, TypeError, KeyError, OSError) as error:
            raise InputError(
                f"`{path}` is damaged: {error}. Remove it, and repeat the command of the training, "
                "which writes it again."
            ) from error
        found.append(Digests(exact, normalised, count, fingerprint))
    return tuple(found)


def has_digests(run: Path, kind: str, fingerprint: str) -> bool:
    """Returns whether a run has the digests of a data set; older runs have none."""
    return _path(run, kind, fingerprint).is_file()


def run_of_weights(path: str | Path) -> Path:
    """Returns the folder of the run that initial weights come from.

    `path` may be a run, one of its checkpoints, or the prefix of a TensorFlow checkpoint in it.
    """
    path = Path(path).absolute()
    return next((one for one in (path, *path.parents[:3]) if (one / FOLDER).is_dir()), path)


def find_trained(trained: Sequence[Digests], data: Digests) -> np.ndarray:
    """Finds the rows that were trained on, apart from small differences: bool [N]."""
    is_trained = np.zeros(len(data.normalised), bool)
    for part in trained:
        is_trained |= np.isin(data.normalised, part.normalised)
    return is_trained


def find_overlap(trained: Sequence[Digests], data: Digests) -> Overlap:
    """Counts the rows of a data set that were trained on; all its rows must have digests.

    If only a sample of K of the N training rows has digests, the number is estimated: a row that
    was trained on is in the sample with the probability K / N.
    """
    rows = len(data.exact)
    if data.fingerprint and any(part.fingerprint == data.fingerprint for part in trained):
        return Overlap(rows, rows, rows)
    exact, _ = _count([(part.exact, part.count) for part in trained], data.exact)
    counts = [(part.normalised, part.count) for part in trained]
    normalised, is_estimate = _count(counts, data.normalised)
    return Overlap(rows, min(exact, normalised), normalised, is_estimate)


def _count(trained, digests):
    """Returns how many of the digests were trained on, and whether that is an estimate."""
    is_trained = np.zeros(len(digests), bool)
    samples = []
    for found, count in trained:
        # If all rows of a sample are here, so are all rows that it was drawn from: these are the
        # same records in other files.
        if len(found) == count:
            is_trained |= np.isin(digests, found)
        elif len(digests) <= count and np.isin(found, digests).all():
            is_trained[:] = True
        else:
            samples.append((found, count))
    estimate = 0.0
    for found, count in samples:
        estimate += np.count_nonzero(~is_trained & np.isin(digests, found)) * count / len(found)
    total = int(np.count_nonzero(is_trained)) + round(estimate)
    return min(total, len(digests)), estimate > 0


def _path(run, kind, fingerprint):
    return Path(run) / FOLDER / f"{kind}-{fingerprint[:16]}.npz"
