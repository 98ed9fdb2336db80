"""Inspects a folder of records: statistics of a sample, examples to read, and damaged bytes.

An inspection is computed from the records alone, as a reader would see them, not from what the
build counted or intended. A verification compares all bytes with the info file: its digest covers
that file, and the digests in it cover the shards, their indexes and the tokenizer, so that the
change of any bit is found. Other files are not looked at.
"""

import contextlib
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.files import sha256_of
from data_pipeline.instances.masking import unmask
from data_pipeline.progress import CountedProgress
from data_pipeline.randomness import key_of, permute
from data_pipeline.records.dataset_info import INFO_FILE, TOKENIZER_FOLDER, DatasetInfo
from data_pipeline.records.decoding import read_features
from data_pipeline.records.record_files import RecordFiles, index_path, scan_records
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_files import SPACE

logger = logging.getLogger(__name__)

#: Names of the labels 0 and 1, by objective.
ORDERS = {"sop": ("in order", "swapped"), "nsp": ("in order", "random second")}
_QUANTILES = {"min": 0, "5%": 5, "25%": 25, "median": 50, "75%": 75, "95%": 95, "max": 100}


class Masks(NamedTuple):
    """Statistics of the masks of a sample; fractions refer to all predictions."""

    per_sequence: float  # mean number of predictions
    mask: float  # shown as [MASK]
    kept: float  # shown unchanged, or replaced by a random token that equals the original
    random: float  # shown as another token


class Example(NamedTuple):
    """A record as text; a prediction is shown as `[shown token→original token]`."""

    record: int  # its number among all records
    order: str  # "in order", "swapped", "random second", or "none"
    segments: list[str]  # text of each segment, with special tokens
    padding: int  # number of padding positions


class Inspection(NamedTuple):
    """The result of `inspect_records`; fractions and quantiles describe the sample."""

    folder: Path
    num_records: int
    num_sampled: int
    max_seq_length: int  # S
    max_predictions_per_seq: int  # P
    objective: str  # meaning of a label of 1, see DatasetInfo
    input_format: str | None  # see PretrainingDataConfig; None if it is not known
    padding: float  # fraction of all positions
    lengths: dict[str, int]  # quantiles of the tokens of a record, including special ones
    label_1: float | None  # fraction of the records; None if the objective is "none"
    masks: Masks | None  # None if the reader samples them
    examples: list[Example]

    def findings(self) -> Iterator[tuple[str, str]]:
        """Yields what the sample shows as (name, text), for the screen and for reports."""
        yield (
            "length, predictions",
            f"S = {self.max_seq_length}, P = {self.max_predictions_per_seq}",
        )
        yield "input format", f"{self.input_format or 'unknown'}, objective {self.objective}"
        lengths = ", ".join(f"{name} {length}" for name, length in self.lengths.items())
        yield "length of sequences", lengths
        yield "padding", f"{_percent(self.padding)} of positions"
        if self.label_1 is not None:
            yield "label 1", f"{_percent(self.label_1)} of records"
        masks = self.masks
        if masks is None:
            yield "masks", "sampled by the reader"
            return
        yield "predictions", f"{masks.per_sequence:.1f} per sequence"
        yield (
            "replaced by",
            f"[MASK] {_percent(masks.mask)}, the token itself {_percent(masks.kept)}, a random "
            f"token {_percent(masks.random)}",
        )


def inspect_records(
    folder: str | Path,
    examples: int = 3,
    seed: int = 0,
    sample: int = 2000,
) -> Inspection:
    """Inspects a random sample of the records of a folder.

    Args:
        folder: str or Path.
        examples: int. Number of records to show as text.
        seed: int. Selects the sample; the examples are its first records.
        sample: int. Number of records to inspect; they are held in memory.

    Returns:
        Inspection.

    Raises:
        InputError: As `RecordFiles`; if there is no record or one of the sample is damaged.
    """
    files = RecordFiles(folder)
    folder, info = files.folder, files.info
    if sample < 1 or examples < 0 or not info.num_records:
        raise InputError(
            "`sample` must be at least 1 and `examples` not negative, and the folder must contain "
            f"records. Received: sample={sample}, examples={examples}, and {info.num_records} "
            f"records in `{folder}`."
        )
    size = min(sample, info.num_records)
    numbers = permute(np.arange(size), info.num_records, key_of("inspection", seed))
    has_tokenizer = (folder / TOKENIZER_FOLDER).is_dir()
    tokenizer = Tokenizer.load(folder / TOKENIZER_FOLDER) if has_tokenizer else None
    seen = _Sample(read_features(files, numbers), info, tokenizer)
    lengths = seen.real.sum(axis=1)
    return Inspection(
        folder=folder,
        num_records=info.num_records,
        num_sampled=size,
        max_seq_length=info.max_seq_length,
        max_predictions_per_seq=info.max_predictions_per_seq,
        objective=info.objective,
        input_format=info.config.get("input_format"),
        padding=float(1 - seen.real.mean()),
        lengths={
            name: int(np.percentile(lengths, percentage, method="inverted_cdf"))
            for name, percentage in _QUANTILES.items()
        },
        label_1=None if info.objective == "none" else float(seen.labels.mean()),
        masks=seen.masks() if info.static_masks else None,
        examples=[seen.example(row, numbers[row]) for row in range(min(examples, size))],
    )


class _Sample:
    """N records as arrays, and the statistics derived from them.

    `shown` and `original` are ids as a model sees them and before masking, int [N, S]; `real` are
    the tokens that are not padding, `predicted` those to be predicted, bool [N, S].
    """

    def __init__(self, records, info: DatasetInfo, tokenizer: Tokenizer | None):
        self._info, self._tokenizer = info, tokenizer
        self.shown, self.real = records["input_ids"], records["input_mask"] != 0
        self.labels = records["next_sentence_labels"][:, 0] != 0  # bool [N]
        self._segments = records["segment_ids"]
        self._weights, positions = records["masked_lm_weights"] > 0, records["masked_lm_positions"]
        self.original = unmask(self.shown, positions, records["masked_lm_ids"], self._weights)
        rows, predictions = np.nonzero(self._weights)
        self.predicted = np.zeros(self.real.shape, bool)
        self.predicted[rows, positions[rows, predictions]] = True
        # Most predicted tokens were replaced by [MASK].
        changed = self.shown[self.predicted & (self.shown != self.original)]
        self._mask_id = (
            tokenizer.mask_id if tokenizer else np.bincount(changed, minlength=1).argmax()
        )

    def masks(self):
        """Returns the Masks of the sample."""
        shown, original = self.shown[self.predicted], self.original[self.predicted]
        masked = shown == self._mask_id
        kept = ~masked & (shown == original)
        kinds = masked, kept, ~masked & ~kept
        return Masks(
            float(self._weights.sum(axis=1).mean()),
            *(float(kind.sum() / max(len(kind), 1)) for kind in kinds),
        )

    def example(self, row, number):
        """Returns a row, the record of this number, as an Example."""
        real, orders = self.real[row], ORDERS.get(self._info.objective)
        order = orders[int(self.labels[row])] if orders else "none"
        segments = []
        for segment in np.unique(self._segments[row][real]):
            positions = np.flatnonzero(real & (self._segments[row] == segment))
            text = "".join(self._readable(row, position) for position in positions)
            segments.append(text.strip())
        return Example(int(number), order, segments, int((~real).sum()))

    def _readable(self, row, position):
        original, shown = int(self.original[row, position]), int(self.shown[row, position])
        has_space, name = self._shown(original)
        if self.predicted[row, position]:
            hidden = self._tokenizer and shown == self._mask_id
            before = "MASK" if hidden else self._shown(shown)[1] or SPACE
            name = f"[{before}→{name or SPACE}]"
        return f" {name}" if has_space else name

    def _shown(self, id):
        """Returns whether there is a space before a token, and its name."""
        if self._tokenizer is None:
            return True, str(id)
        has_space, name = self._tokenizer.shown(id)
        special = self._tokenizer.cls_id, self._tokenizer.sep_id, self._tokenizer.mask_id
        return has_space or id in special, name


def _percent(fraction):
    return f"{100 * fraction:.1f} %"


class Problem(NamedTuple):
    """A fault of a folder of records."""

    file: str  # the file, relative to the folder
    says: str  # the fault; completes "`file` ..."

    def __str__(self):
        return f"`{self.file}` {self.says}"


class Verification(NamedTuple):
    """The result of `verify_records`."""

    folder: Path
    num_shards: int  # record files that the info file names
    num_records: int  # valid records in them
    num_bytes: int  # bytes read from record files
    seconds: float
    problems: list[Problem]  # empty if there is no fault


def verify_records(folder: str | Path) -> Verification:
    """Reads all files of a folder of records and reports everything that is wrong with them.

    Files are checked one by one, each read once; the progress is logged every few seconds.

    Raises:
        InputError: If the info file does not exist or is damaged.
    """
    started = time.monotonic()
    folder, info = Path(folder), DatasetInfo.read(folder)
    faults: dict[str, str | None] = {}
    num_records = num_bytes = 0
    size = sum(shard.num_bytes for shard in info.shards)
    progress = CountedProgress(logger, "verifying", size / 1e6, "MB")
    for shard in info.shards:
        with _unreadable_noted(faults, shard.file):
            scan = scan_records(folder / shard.file)
            faults[shard.file] = _shard_fault(shard, scan)
            num_records += len(scan.offsets) - 1
            num_bytes += scan.num_bytes
        if shard.index_sha256 is not None:
            index = index_path(folder / shard.file)
            with _unreadable_noted(faults, index.name):
                if sha256_of(index) != shard.index_sha256:
                    faults[index.name] = f"is damaged: its sha256 differs from {INFO_FILE}"
        progress.add(shard.num_bytes / 1e6)
    if (folder / TOKENIZER_FOLDER).exists():
        with _unreadable_noted(faults, TOKENIZER_FOLDER):
            digest = Tokenizer.load(folder / TOKENIZER_FOLDER).digest
            if info.tokenizer_digest not in (None, digest):
                says = f"is not the tokenizer of these records according to {INFO_FILE}"
                faults[TOKENIZER_FOLDER] = says
    elif info.tokenizer_digest is not None:
        faults[TOKENIZER_FOLDER] = f"does not exist, but {INFO_FILE} has it"
    problems = [Problem(file, says) for file, says in faults.items() if says]
    seconds = time.monotonic() - started
    return Verification(folder, len(info.shards), num_records, num_bytes, seconds, problems)


@contextlib.contextmanager
def _unreadable_noted(faults, name):
    """Notes that a file cannot be read, or is a pipe or a device, if the block finds that."""
    try:
        yield
    except (OSError, InputError) as error:
        faults[name] = f"cannot be read: {getattr(error, 'strerror', None) or error}"


def _shard_fault(shard, scan):
    if scan.fault:
        return f"is damaged: {scan.fault}"
    if scan.sha256 != shard.sha256:
        return (
            f"is not the file that was written: it must have {shard.num_records} records in "
            f"{shard.num_bytes} bytes, but has {len(scan.offsets) - 1} in {scan.num_bytes}, or "
            "others"
        )
    return None
