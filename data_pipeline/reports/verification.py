"""Checks every byte of a folder of records against its info file.

The digest in `dataset_info.json` covers that file, and the digests in it cover the shards, their
indexes and the tokenizer, so that the change of any bit is found. Other files are not looked at.
"""

import logging
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.files import sha256_of
from data_pipeline.progress import CountedProgress
from data_pipeline.records.dataset_info import INFO_FILE, TOKENIZER_FOLDER, DatasetInfo
from data_pipeline.records.record_files import index_path, scan_records
from data_pipeline.tokenizers.tokenization import Tokenizer

logger = logging.getLogger(__name__)


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
    problems: list[Problem] = []
    num_records = num_bytes = 0
    size = sum(shard.num_bytes for shard in info.shards)
    progress = CountedProgress(logger, "verifying", size / 1e6, "MB")
    for shard in info.shards:
        scan, says = _check_shard(folder, shard)
        problems += [Problem(shard.file, says)] if says else []
        if shard.index_sha256 is not None:
            path, offsets = index_path(folder / shard.file), None if says else scan.offsets
            says = _index_fault(path, shard, offsets)
            problems += [Problem(path.name, says)] if says else []
        if scan:
            num_records, num_bytes = num_records + len(scan.offsets) - 1, num_bytes + scan.num_bytes
        progress.add(shard.num_bytes / 1e6)
    if says := _tokenizer_fault(folder / TOKENIZER_FOLDER, info):
        problems.append(Problem(TOKENIZER_FOLDER, says))
    seconds = time.monotonic() - started
    return Verification(folder, len(info.shards), num_records, num_bytes, seconds, problems)


def _check_shard(folder, shard):
    """Returns the Scan of a shard, or None if it cannot be read, and its faults or None."""
    path = folder / shard.file
    if not path.is_file():
        return None, f"does not exist, but {INFO_FILE} lists it"
    try:
        scan = scan_records(path)
    except OSError as error:
        return None, f"cannot be read: {error.strerror}"
    if scan.fault:
        return scan, f"is damaged: {scan.fault}"
    if scan.sha256 != shard.sha256:
        num_records = len(scan.offsets) - 1
        return scan, (
            f"is not the file that was written: it must have {shard.num_records} records in "
            f"{shard.num_bytes} bytes, but has {num_records} in {scan.num_bytes}, or others"
        )
    return scan, None


def _index_fault(path, shard, offsets):
    """Returns the fault of an index, or None; `offsets` are None if the shard has a fault."""
    if not path.is_file():
        return f"does not exist; it is the index of `{shard.file}`"
    try:
        if sha256_of(path) != shard.index_sha256:
            return f"is damaged: its sha256 differs from {INFO_FILE}"
        is_wrong = offsets is not None and path.read_bytes() != np.asarray(offsets, "<u8").tobytes()
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return f"does not match the records of `{shard.file}`" if is_wrong else None


def _tokenizer_fault(folder, info):
    """Returns the fault of a tokenizer folder, or None."""
    if not folder.exists():
        return None if info.tokenizer_digest is None else f"does not exist, but {INFO_FILE} has it"
    try:
        tokenizer = Tokenizer.load(folder)
    except InputError as error:
        return f"cannot be loaded: {error}"
    if info.tokenizer_digest not in (None, tokenizer.digest):
        return f"is not the tokenizer of these records according to {INFO_FILE}"
    return None
