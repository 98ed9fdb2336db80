"""Shows records of a folder as pieces, and finds damaged bytes.

A verification compares all bytes with the info file: its digest covers that file, and the digests
in it cover the shards, their indexes and the tokenizer, so that the change of any bit is found.
Other files are not looked at.
"""

import logging
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.files import sha256_of
from data_pipeline.progress import CountedProgress
from data_pipeline.records.dataset_info import INFO_FILE, DatasetInfo
from data_pipeline.records.decoding import read_features
from data_pipeline.records.record_files import RecordFiles, index_path
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_files import TOKENIZER_FOLDER

logger = logging.getLogger(__name__)

#: Names of the labels 0 and 1, by objective.
ORDERS = {"sop": ("in order", "swapped"), "nsp": ("in order", "random second")}


class Example(NamedTuple):
    """A record as pieces; a prediction is written `shown piece→original piece`."""

    order: str  # "in order", "swapped", "random second", or "none"
    segments: list[str]  # the pieces of each segment, special ones too, with a space between them
    padding: int  # number of padding positions


def inspect_records(folder: str | Path, examples: int = 3) -> list[Example]:
    """Returns the first records of a folder, whose order is random, as pieces.

    Args:
        folder: str or Path.
        examples: int. Number of records; all of them if there are fewer.

    Returns:
        list of Example.

    Raises:
        InputError: As `RecordFiles`; if a record is damaged, or `examples` is less than 1.
    """
    if examples < 1:
        raise InputError(f"`examples` must be at least 1. Received: {examples}.")
    files = RecordFiles(folder)
    numbers = np.arange(min(examples, len(files)))
    columns = read_features(files, numbers)
    tokenizer = Tokenizer.load(files.folder / TOKENIZER_FOLDER)
    rows = [{name: column[row] for name, column in columns.items()} for row in numbers]
    return [_example(row, files.info.objective, tokenizer) for row in rows]


def _example(row, objective, tokenizer):
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
        pieces = []
        for position in np.flatnonzero(is_real & (row["segment_ids"] == segment)).tolist():
            shown = tokenizer.piece_of(row["input_ids"][position])
            if position in originals:
                shown = f"{shown}→{tokenizer.piece_of(originals[position])}"
            pieces.append(shown)
        segments.append(" ".join(pieces))
    label = int(row["next_sentence_labels"][0] != 0)
    order = ORDERS[objective][label] if objective in ORDERS else "none"
    return Example(order, segments, int((~is_real).sum()))


class Verification(NamedTuple):
    """The result of `verify_records`."""

    folder: Path
    num_records: int  # in the record files, according to the info file
    num_bytes: int  # of the record files, according to the info file
    problems: list[str]  # the fault of each file that has one


def verify_records(folder: str | Path) -> Verification:
    """Compares the digest of each file of a folder of records, and reports those that differ.

    The progress is logged every few seconds. A reader names the record that is damaged.

    Raises:
        InputError: If the info file does not exist or is damaged.
    """
    folder, info = Path(folder), DatasetInfo.read(folder)
    problems = []
    num_bytes = sum(shard.num_bytes for shard in info.shards)
    progress = CountedProgress(logger, "verifying", num_bytes / 1e6, "MB")
    for shard in info.shards:
        problems += _faults_of(folder / shard.file, sha256_of, shard.sha256)
        problems += _faults_of(index_path(folder / shard.file), sha256_of, shard.index_sha256)
        progress.add(shard.num_bytes / 1e6)
    problems += _faults_of(folder / TOKENIZER_FOLDER, _digest_of_tokenizer, info.tokenizer_digest)
    return Verification(folder, info.num_records, num_bytes, problems)


def _faults_of(path, digest_of, expected):
    """Yields the fault of a file or a folder: it cannot be read, or has another digest."""
    try:
        digest = digest_of(path)
    except (OSError, InputError) as error:
        reason = getattr(error, "strerror", None) or error
        yield f"`{path.name}` cannot be read: {reason}"
    else:
        if digest != expected:
            yield f"`{path.name}` is damaged or another one: its digest is not in {INFO_FILE}"


def _digest_of_tokenizer(folder):
    return Tokenizer.load(folder).digest
