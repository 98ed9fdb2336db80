"""What a run was trained on, as digests, so that a training score never passes for a held-out one.

The folder `trained_on` of a run has a file for each data set that its weights were trained on,
including the data sets of the runs that it started from. A file is written whole, and never
changed.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from data_pipeline.array_files import read_arrays, write_arrays
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import whole_file

if TYPE_CHECKING:  # it loads TensorFlow
    from albert_keras.runs.run import Run

logger = logging.getLogger(__name__)

FOLDER = "trained_on"
#: Kinds of digests: of the examples of a task, and of the records of pre-training.
ROWS, RECORDS = "rows", "records"


class Digests(NamedTuple):
    """Digests of a data set, 64 bits for each row (example or record).

    Rows that differ in case, white space or Unicode form, and records that differ in their masks or
    the order of their segments, have the same digest. Two different rows have an equal digest with
    a probability of 2^-64.
    """

    normalised: np.ndarray  # uint64 [K]
    count: int  # rows of the data set, N; if K < N, only a sample of K rows has digests
    fingerprint: str  # identifies the data set, as in `run.json`; "" if it is not known


class Overlap(NamedTuple):
    """How many of the rows to score were trained on."""

    rows: int  # to score
    normalised: int  # of these, rows that were trained on, apart from small differences
    is_estimate: bool = False  # whether only a sample of the training data was compared

    @classmethod
    def of(cls, fields: Mapping[str, Any] | None) -> "Overlap | None":
        """Returns the Overlap of a JSON object."""
        return fields and cls(**fields)

    @property
    def is_total(self) -> bool:
        """Whether all rows were trained on, so that their score is a training score."""
        return self.normalised == self.rows and not self.is_estimate

    @property
    def is_small(self) -> bool:
        """Whether some, but fewer than 1 %, of the rows were trained on: scores change little."""
        return 0 < self.normalised < self.rows / 100

    @property
    def is_held_out(self) -> bool:
        """Whether none of the rows were trained on, or so few that `is_small`."""
        return self.normalised == 0 or self.is_small

    @property
    def is_large(self) -> bool:
        """Whether a tenth of the rows or more were trained on, so that scores are not compared."""
        return self.normalised >= max(self.rows, 1) / 10

    def sentence(self, kind: str, what: str = "") -> str:
        """Returns a phrase such as "1,350 of 1,500 rows were trained on".

        Args:
            kind: `ROWS` or `RECORDS`.
            what: Words that follow the number of rows, such as " of `dev.tsv`".
        """
        if self.is_total:
            subject = f"all {self.rows:,} {kind}" if self.rows > 1 else f"the only {kind[:-1]}"
        else:
            about = "about " if self.is_estimate else ""
            subject = f"{about}{self.normalised:,} of {self.rows:,} {kind}"
        return f"{subject}{what} {'was' if self.normalised == 1 else 'were'} trained on"


def save_digests(run: Path, kind: str, digests: Digests) -> None:
    """Saves the digests of a data set in the folder of a run, unless they are there already."""
    path = _path(run, kind, digests.fingerprint)
    if not path.is_file():
        path.parent.mkdir(exist_ok=True)
        with whole_file(path) as temporary:
            write_arrays(temporary, digests._asdict())


def read_digests(run: str | Path, kind: str) -> tuple[Digests, ...]:
    """Reads the digests of all data sets that a run was trained on; InputError if damaged.

    Args:
        run: The folder of a run, one of its checkpoints, or a checkpoint's prefix.
    """
    path = Path(run).absolute()
    run = next((one for one in (path, *path.parents[:3]) if (one / FOLDER).is_dir()), path)
    found = []
    for path in sorted((run / FOLDER).glob(f"{kind}-*.npz")):
        try:
            arrays = read_arrays(path)
            normalised = np.asarray(arrays["normalised"], np.uint64)
            count, fingerprint = int(arrays["count"]), str(arrays["fingerprint"])
            if normalised.ndim != 1 or len(normalised) > count:
                raise ValueError(f"{normalised.shape} digests of {count} rows")
        except (ValueError, TypeError, KeyError, OSError) as error:
            raise InputError(
                f"`{path}` is damaged: {error}. Remove it, and repeat the command of the training, "
                "which writes it again."
            ) from error
        found.append(Digests(normalised, count, fingerprint))
    return tuple(found)


def find_overlap(trained: Sequence[Digests], data: Digests) -> Overlap:
    """Counts the rows of a data set that were trained on; all its rows must have digests.

    If only a sample of K of the N training rows has digests, the number is estimated: a row that
    was trained on is in the sample with the probability K / N. But a sample that is here as a whole
    was drawn from these rows in other files.
    """
    rows, estimate = len(data.normalised), 0.0
    is_trained = np.zeros(rows, bool)
    for part in sorted(trained, key=lambda part: len(part.normalised) < part.count):
        same = data.fingerprint != "" and part.fingerprint == data.fingerprint
        found = np.isin(data.normalised, part.normalised)
        share = len(part.normalised) / part.count
        if share == 1:
            is_trained |= found
        elif same or rows <= part.count and np.isin(part.normalised, data.normalised).all():
            is_trained[:] = True
        else:
            estimate += np.count_nonzero(~is_trained & found) / share
    total = int(np.count_nonzero(is_trained)) + round(estimate)
    return Overlap(rows, min(total, rows), estimate > 0)


def check_overlap(
    trained: Sequence[Digests],
    data: Digests,
    kind: str,
    what: str,
    rule: str | None,
    remedy: str,
    *mistakes: Mistake,
) -> Overlap:
    """Counts the rows of a data set that were trained on, see `find_overlap`, and logs them.

    Args:
        trained, data: What was trained on, and the data set to score.
        kind: `ROWS` or `RECORDS`.
        what: The data set, in a message.
        rule: What is required of it. None allows that all rows were trained on.
        remedy: Sentence that says what to do otherwise.
        *mistakes: See `InputError`.

    Raises:
        InputError: If all rows were trained on and there is a `rule`.
    """
    overlap = find_overlap(trained, data)
    found = overlap.sentence(kind, f" of `{what}`")
    if overlap.is_total and rule is not None:
        raise InputError(f"{rule} Received: {found}. {remedy}", *mistakes)
    if overlap.normalised:
        level = logging.INFO if overlap.is_small else logging.WARNING
        meaning = "their score is not a held-out score"
        if overlap.is_small:
            meaning = "fewer than 1 %, which changes their score little"
        logger.log(level, "%s: %s.", found[0].upper() + found[1:], meaning)
    return overlap


def check_scored(
    run: "Run", kind: str, data: Digests, what: str, allow_trained_rows: bool
) -> Overlap | None:
    """Compares a data set to score with what a run was trained on, as `check_overlap`.

    Returns:
        Overlap, or None with a warning if it is unknown: for converted models, and for runs of
        older versions, unless the data set is the one of the training.

    Raises:
        InputError: If all rows were trained on and `allow_trained_rows` is False.
    """
    used = run.record["data"]
    fingerprints = {each["fingerprint"] for each in (used, *used.get("stages", ()))}
    if data.fingerprint in fingerprints:
        trained: tuple[Digests, ...] = (data,)
    elif all(_path(run.path, kind, each).is_file() for each in fingerprints):
        trained = read_digests(run.path, kind)
    else:
        logger.warning(
            "It is unknown whether `%s` was trained on some of these %s: it was converted from "
            "another format, or trained by a version that did not save their digests. Repeat the "
            "command of a training to save them.",
            run.path,
            kind,
        )
        return None
    rule = f"`{what}` must have {kind} that `{run.path}` was not trained on."
    remedy = "Give other texts, or use `allow_trained_rows=True` to compute the training score."
    return check_overlap(trained, data, kind, what, None if allow_trained_rows else rule, remedy)


def _path(run, kind, fingerprint):
    return Path(run) / FOLDER / f"{kind}-{fingerprint[:16]}.npz"
