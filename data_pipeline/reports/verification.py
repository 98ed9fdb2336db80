"""Checks every byte of a folder of records against its info file.

The digest in `dataset_info.json` covers that file, the digests in it cover the shards, their
indexes and the tokenizer; so no bit anywhere in them can change unnoticed.
"""

import hashlib
import logging
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import INFO_FILE, TOKENIZER_FOLDER, DatasetInfo
from data_pipeline.records.examples import decode_instance
from data_pipeline.records.record_files import INDEX_SUFFIX, index_path, scan_records
from data_pipeline.records.schema import schema_fault
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import VOCAB_FILE

logger = logging.getLogger(__name__)

#: Around each record of a TFRecord file: length and checksum before it, checksum after it.
_HEADER, _FOOTER = 12, 4
_SECONDS_BETWEEN_LINES = 3


class Problem(NamedTuple):
    """One thing wrong with a folder of records.

    Attributes:
        file: str. Which file, relative to the folder.
        says: str. What is wrong; completes "`file` ...".
    """

    file: str
    says: str

    def __str__(self):
        return f"`{self.file}` {self.says}"


class Verification(NamedTuple):
    """What `verify_records` found.

    Attributes:
        folder: Path.
        num_shards: int. Record files that the info file names.
        num_records: int. Sound records in them.
        num_bytes: int. Bytes read of record files.
        seconds: float.
        problems: list of Problem. Empty if all is well.
    """

    folder: Path
    num_shards: int
    num_records: int
    num_bytes: int
    seconds: float
    problems: list[Problem]


def verify_records(folder):
    """Reads all files of a folder of records and tells everything that is wrong with them.

    Files are checked one by one, each read once; a line about the progress is logged every few
    seconds.

    Args:
        folder: str or Path.

    Returns:
        Verification.

    Raises:
        InputError: If there is no info file, or it is damaged itself: nothing is known then.
    """
    started = told = time.monotonic()
    folder, info = Path(folder), DatasetInfo.read(folder)
    problems, num_records, num_bytes = [], 0, 0
    total_bytes = sum(shard.num_bytes for shard in info.shards)
    for number, shard in enumerate(info.shards):
        now = time.monotonic()
        if now >= told + _SECONDS_BETWEEN_LINES:
            told = now
            logger.info(
                "%d of %d files, %.1f of %.1f GB, %.0f MB/s, %d problems",
                *(number, len(info.shards), num_bytes / 1e9, total_bytes / 1e9),
                *(num_bytes / 1e6 / (now - started), len(problems)),
            )
        scan, says = _check_shard(folder, shard, info)
        problems += [Problem(shard.file, says)] if says else []
        problems += _check_index(folder, shard, info, None if says else scan.offsets)
        if scan:
            num_records, num_bytes = num_records + len(scan.offsets) - 1, num_bytes + scan.num_bytes
    problems += _extra_files(folder, info)
    problems += _check_tokenizer(folder / TOKENIZER_FOLDER, info)
    seconds = time.monotonic() - started
    return Verification(folder, len(info.shards), num_records, num_bytes, seconds, problems)


def _check_shard(folder, shard, info):
    """Returns the Scan of a shard, or None if it cannot be read, and what is wrong or None."""
    path = folder / shard.file
    if not path.is_file():
        return None, f"is missing, though {INFO_FILE} lists it"
    try:
        scan = scan_records(path)
    except OSError as error:
        return None, f"cannot be read: {error.strerror}"
    faults = []
    if scan.sha256 != shard.sha256:
        for other in info.shards:
            if other.sha256 == scan.sha256:
                return scan, f"holds what `{other.file}` should hold: swapped, or copied over"
    if scan.num_bytes != shard.num_bytes:
        faults.append(f"should have {shard.num_bytes} bytes, but has {scan.num_bytes}")
    if scan.fault:
        faults.append(f"is damaged: {scan.fault}")
    elif len(scan.offsets) - 1 != shard.num_records:
        faults.append(f"should hold {shard.num_records} records, but holds {len(scan.offsets) - 1}")
    if scan.sha256 != shard.sha256 and not faults:
        faults.append("is another file than was written: sound in itself, but its sha256 differs")
    if not faults and shard.num_records and (fault := _first_record_fault(path, scan, info)):
        faults.append(f"is damaged: record 0 {fault}")
    return scan, "; ".join(faults) or None


def _first_record_fault(path, scan, info):
    with open(path, "rb") as file:
        frame = file.read(int(scan.offsets[1]))
    try:
        features = decode_instance(frame[_HEADER:-_FOOTER])
        return schema_fault(info.with_our_names(features), info)
    except InputError as error:
        return f"cannot be read: {error}"


def _check_index(folder, shard, info, offsets):
    """Yields the problem of an index, if any; `offsets` are None where the shard has one itself."""
    if shard.index_sha256 is None:
        return
    path = index_path(folder / shard.file)
    if not path.is_file():
        yield Problem(path.name, f"is missing, the index of `{shard.file}`")
        return
    try:
        content = path.read_bytes()
    except OSError as error:
        yield Problem(path.name, f"cannot be read: {error.strerror}")
        return
    digest = hashlib.sha256(content).hexdigest()
    if digest == shard.index_sha256:
        if offsets is not None and content != np.asarray(offsets, "<u8").tobytes():
            yield Problem(path.name, f"does not tell where the records of `{shard.file}` begin")
        return
    for other in info.shards:
        if other.index_sha256 == digest:
            rightful = index_path(folder / other.file).name
            yield Problem(
                path.name, f"holds what `{rightful}` should hold: swapped, or copied over"
            )
            return
    size = 8 * (shard.num_records + 1)
    if len(content) != size:
        yield Problem(path.name, f"should have {size} bytes, but has {len(content)}")
    else:
        yield Problem(path.name, f"is damaged: its sha256 is not the one in {INFO_FILE}")


def _extra_files(folder, info):
    """Yields a problem for each file that looks like records or an index and is not known."""
    known = {shard.file for shard in info.shards}
    known |= {index_path(shard.file).name for shard in info.shards if shard.index_sha256}
    found = {*folder.glob("*.tfrecord*"), *folder.glob(f"*{INDEX_SUFFIX}")}
    for path in sorted(found):
        if path.is_file() and not path.name.startswith(".") and path.name not in known:
            yield Problem(path.name, f"does not belong here: {INFO_FILE} does not name it")


def _check_tokenizer(folder, info):
    """Yields the problem of a tokenizer folder, if any."""
    if not folder.exists():
        if info.tokenizer_digest is not None:
            yield Problem(folder.name, f"is missing, though {INFO_FILE} names its digest")
        return
    try:
        tokenizer = Tokenizer.load(folder)
    except InputError as error:
        yield Problem(folder.name, f"cannot be loaded: {error}")
        return
    if info.tokenizer_digest not in (None, tokenizer.digest):
        yield Problem(folder.name, f"is not the tokenizer of these records by {INFO_FILE}")
        return
    # The list of pieces is for people, no digest covers it; it follows from the model.
    listing = folder / VOCAB_FILE
    if listing.is_file():
        with tempfile.TemporaryDirectory() as again:
            tokenizer.save(again)
            same = listing.read_bytes() == (Path(again) / VOCAB_FILE).read_bytes()
        if not same:
            yield Problem(f"{folder.name}/{VOCAB_FILE}", "does not list the pieces of the model")
