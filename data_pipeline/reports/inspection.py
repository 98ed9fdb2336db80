"""Shows records of a folder as text, and finds damaged bytes.

A verification compares all bytes with the info file: its digest covers that file, and the digests
in it cover the shards, their indexes and the tokenizer, so that the change of any bit is found.
Other files are not looked at.
"""

import contextlib
import logging
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.files import sha256_of
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


class Example(NamedTuple):
    """A record as text; a prediction is shown as `[shown token→original token]`."""

    record: int  # its number among all records
    order: str  # "in order", "swapped", "random second", or "none"
    segments: list[str]  # text of each segment, with special tokens
    padding: int  # number of padding positions


def inspect_records(folder: str | Path, examples: int = 3, seed: int = 0) -> list[Example]:
    """Returns records of a folder as text.

    Args:
        folder: str or Path.
        examples: int. Number of records; all of them if there are fewer.
        seed: int. Selects the records.

    Returns:
        list of Example.

    Raises:
        InputError: As `RecordFiles`; if a record is damaged, or `examples` is less than 1.
    """
    if examples < 1:
        raise InputError(f"`examples` must be at least 1. Received: {examples}.")
    files = RecordFiles(folder)
    count = files.info.num_records
    numbers = permute(np.arange(min(examples, count)), count, key_of("inspection", seed))
    columns = read_features(files, numbers)
    tokenizer = Tokenizer.load(files.folder / TOKENIZER_FOLDER)
    rows = [{name: column[row] for name, column in columns.items()} for row in range(len(numbers))]
    return [
        _example(int(number), row, files.info.objective, tokenizer)
        for number, row in zip(numbers, rows, strict=True)
    ]


def _example(number, row, objective, tokenizer):
    """Returns a record as an Example; `row` are its features, see `decode_batch`."""
    is_real, is_predicted = row["input_mask"] != 0, row["masked_lm_weights"] > 0
    originals = dict(
        zip(
            row["masked_lm_positions"][is_predicted].tolist(),
            row["masked_lm_ids"][is_predicted].tolist(),
            strict=True,
        )
    )
    segments = []
    for segment in np.unique(row["segment_ids"][is_real]):
        positions = np.flatnonzero(is_real & (row["segment_ids"] == segment)).tolist()
        text = (
            _readable(int(row["input_ids"][position]), originals.get(position), tokenizer)
            for position in positions
        )
        segments.append("".join(text).strip())
    label = int(row["next_sentence_labels"][0] != 0)
    order = ORDERS[objective][label] if objective in ORDERS else "none"
    return Example(number, order, segments, int((~is_real).sum()))


def _readable(shown, original, tokenizer):
    """Returns the text of a token with the space before it; `original` if it is predicted."""
    if original is None:
        has_space, name = _piece(shown, tokenizer)
    else:
        has_space, name = _piece(original, tokenizer)
        before = "MASK" if shown == tokenizer.mask_id else _piece(shown, tokenizer)[1]
        name = f"[{before or SPACE}→{name or SPACE}]"
    return f" {name}" if has_space else name


def _piece(id, tokenizer):
    """Returns whether there is a space before a token, and its name."""
    has_space, name = tokenizer.shown(id)
    return has_space or id in (tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id), name


class Problem(NamedTuple):
    """A fault of a folder of records."""

    file: str  # the file, relative to the folder
    says: str  # the fault; completes "`file` ..."

    def __str__(self):
        return f"`{self.file}` {self.says}"


class Verification(NamedTuple):
    """The result of `verify_records`."""

    folder: Path
    num_records: int  # valid records in the record files
    num_bytes: int  # bytes read from record files
    problems: list[Problem]  # empty if there is no fault


def verify_records(folder: str | Path) -> Verification:
    """Reads all files of a folder of records and reports everything that is wrong with them.

    Files are checked one by one, each read once; the progress is logged every few seconds.

    Raises:
        InputError: If the info file does not exist or is damaged.
    """
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
    with _unreadable_noted(faults, TOKENIZER_FOLDER):
        if Tokenizer.load(folder / TOKENIZER_FOLDER).digest != info.tokenizer_digest:
            says = f"is not the tokenizer of these records according to {INFO_FILE}"
            faults[TOKENIZER_FOLDER] = says
    problems = [Problem(file, says) for file, says in faults.items() if says]
    return Verification(folder, num_records, num_bytes, problems)


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
