"""What a run was trained on, as digests, so that a training score never passes for a held-out one.

The folder `trained_on` of a run has the digests of all data that its weights were trained on,
including the data of the runs that it started from.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import whole_file
from data_pipeline.limits import check_regular_file

logger = logging.getLogger(__name__)

FOLDER = "trained_on"
#: Kinds of digests: of the examples of a task, and of the records of pre-training.
ROWS, RECORDS = "rows", "records"


class Digests(NamedTuple):
    """Digests of data, 64 bits for each row (example or record).

    Rows that differ in case, white space or Unicode form, and records that differ in their masks or
    the order of their segments, have the same digest. Two different rows have an equal digest with
    a probability of 2^-64.
    """

    values: np.ndarray  # uint64 [K]
    fingerprints: tuple[str, ...] = ()  # of the data sets, as in `run.json`
    is_sample: bool = False  # whether some rows have no digest

    @classmethod
    def merged(cls, parts: Sequence["Digests"]) -> "Digests":
        """Returns the digests of several data sets as one."""
        values = np.concatenate([np.zeros(0, np.uint64), *(part.values for part in parts)])
        fingerprints = dict.fromkeys(each for part in parts for each in part.fingerprints)
        return cls(np.unique(values), tuple(fingerprints), any(part.is_sample for part in parts))


class Overlap(NamedTuple):
    """How many of the rows to score were trained on."""

    rows: int  # to score
    normalised: int  # of these, rows that were trained on, apart from small differences
    is_estimate: bool = False  # whether there may be more, as the digests are a sample

    @classmethod
    def of(cls, fields: Mapping[str, Any] | None) -> "Overlap | None":
        """Returns the Overlap of a JSON object."""
        return fields and cls(**fields)

    @property
    def is_total(self) -> bool:
        """Whether all rows were trained on, so that their score is a training score."""
        return self.normalised == self.rows

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
        least = "at least " if self.is_estimate else ""
        return f"{least}{self.normalised:,} of {self.rows:,} {kind}{what} were trained on"


def save_digests(run: Path, kind: str, digests: Digests) -> None:
    """Saves the digests of all data that a run is trained on in its folder."""
    path = run / FOLDER / f"{kind}.npz"
    path.parent.mkdir(exist_ok=True)
    with whole_file(path) as temporary:
        fingerprints = np.array(digests.fingerprints, dtype=str)
        with open(temporary, "wb") as file:
            np.savez(file, **digests._replace(fingerprints=fingerprints)._asdict())


def read_digests(run: str | Path, kind: str) -> Digests | None:
    """Reads the digests of all data that a run was trained on; None if the run has none.

    Raises InputError if their file is damaged.

    Args:
        run: The folder of a run, one of its checkpoints, or a checkpoint's prefix.
    """
    path = Path(run).absolute()
    run = next((one for one in (path, *path.parents[:3]) if (one / FOLDER).is_dir()), path)
    path = run / FOLDER / f"{kind}.npz"
    if not path.is_file():
        return None
    try:
        check_regular_file(path)
        with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
            values = np.asarray(arrays["values"], np.uint64)
            fingerprints = np.asarray(arrays["fingerprints"], str)
            is_sample = bool(arrays["is_sample"])
        if (values.ndim, fingerprints.ndim) != (1, 1):
            raise ValueError(f"digests of shape {values.shape}")
        return Digests(values, tuple(fingerprints.tolist()), is_sample)
    except Exception as error:  # NumPy parses headers as Python, and trusts their sizes
        raise InputError(
            f"`{path}` is damaged: {error}. Remove it, and repeat the command of the training, "
            "which writes it again."
        ) from error


def find_overlap(trained: Digests, data: Digests) -> Overlap:
    """Counts the rows of a data set that were trained on; all its rows must have digests."""
    rows = len(data.values)
    if data.fingerprints and set(data.fingerprints) <= set(trained.fingerprints):
        return Overlap(rows, rows)
    found = int(np.count_nonzero(np.isin(data.values, trained.values)))
    return Overlap(rows, found, trained.is_sample)


def check_overlap(
    trained: Digests | None,
    data: Digests,
    kind: str,
    what: str,
    *mistakes: Mistake,
    allow_trained_rows: bool = False,
) -> Overlap | None:
    """Counts the rows of a data set that a model was trained on, and warns if there are any.

    Args:
        trained: What the model was trained on, see `read_digests`; None if that is unknown, as of
            converted models.
        data: The data set to score.
        kind: `ROWS` or `RECORDS`.
        what: The data set, in a message.
        *mistakes: See `InputError`.
        allow_trained_rows: Whether all of the rows may have been trained on.

    Returns:
        Overlap, or None with a warning if it is unknown.

    Raises:
        InputError: If all rows were trained on and that is not allowed.
    """
    if trained is None:
        logger.warning(
            "It is unknown whether the model was trained on some %s of `%s`: it has no "
            "`%s/%s.npz`, which a training writes.",
            *(kind, what, FOLDER, kind),
        )
        return None
    overlap = find_overlap(trained, data)
    found = overlap.sentence(kind, f" of `{what}`")
    if overlap.is_total and not allow_trained_rows:
        raise InputError(
            f"`{what}` must have {kind} that the model was not trained on, because the score would "
            f"be a training score. Received: {found}. Give others; `evaluate` with "
            "`allow_trained_rows=True` computes a training score.",
            *mistakes,
        )
    if overlap.normalised:
        logger.warning("%s: their score is not a held-out score.", found[0].upper() + found[1:])
    return overlap
