"""Adopts records made by other programs: checks them and writes the info file they lack.

The files stay as they are: the info file maps our names of the features to theirs. They must not be
compressed, because records are read by number.
"""

import logging
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.files import whole_folder
from data_pipeline.records.dataset_info import INFO_FILE, TOKENIZER_FOLDER, DatasetInfo, ShardInfo
from data_pipeline.records.decoding import decode_batch, decode_instance
from data_pipeline.records.examples import REQUIRED_FEATURES
from data_pipeline.records.record_files import frame_at, map_file, scan_records
from data_pipeline.tokenizers.tokenization import Tokenizer

logger = logging.getLogger(__name__)

_PATTERN = "*.tf*record*"
_RECORDS_AT_ONCE = 1024
#: Features whose values must be 0 or 1, which `decode_batch` does not check.
_ZERO_OR_ONE = ("input_mask", "segment_ids", "masked_lm_weights", "next_sentence_labels")

#: Meaning of a label of 1, by objective.
LABELS = {
    "sop": "the segments are swapped",
    "nsp": "the second segment is from another document",
    "none": "nothing",
}


class Writer(NamedTuple):
    """A program that writes records."""

    name: str  # its common name
    renamed: dict[str, str]  # our name of a feature -> its own, where they differ
    marks: tuple[str, ...]  # features that only its records have
    objective: str  # meaning of its label of 1: "sop" swapped, "nsp" a random second segment


#: Programs that write TFRecord files of `tf.train.Example`, with lists of fixed length and the
#: names of google-research/bert, except for these differences; the first one whose features all
#: exist is taken. Their source is `create_pretraining_data.py` of google-research/albert,
#: google-research/bert, tensorflow/models (`official/nlp/data`, beside `pretrain_dataloader.py`)
#: and NVIDIA/DeepLearningExamples (`TensorFlow/LanguageModeling/BERT/utils` and
#: `TensorFlow2/LanguageModeling/BERT`).
WRITERS = (
    Writer("google-research/albert", {}, ("token_boundary",), "sop"),
    Writer(
        "tensorflow/models (use_v2_feature_names)",
        {"input_ids": "input_word_ids", "segment_ids": "input_type_ids"},
        (),
        "nsp",
    ),
    Writer("google-research/bert, tensorflow/models or NVIDIA", {}, (), "nsp"),
)


def adopt_records(
    folder: str | Path,
    tokenizer: Tokenizer | None = None,
    vocab_size: int | None = None,
    objective: str | None = None,
) -> DatasetInfo:
    """Writes `dataset_info.json` for record files that came without one.

    Every record is read once. The program that wrote them, one of `WRITERS`, is identified by the
    features of the first record, which also gives S and P; additional features are ignored.

    Args:
        folder: str or Path. Folder of the files, whose names match `*.tf*record*`.
        tokenizer: Tokenizer or None. The tokenizer they were made with, copied beside them; without
            it a model can be trained on them but not exported.
        vocab_size: int or None. Size of the vocabulary if `tokenizer` is None.
        objective: str or None. Meaning of a label of 1: "sop" swapped, "nsp" a random second
            segment, "none" nothing to learn. None takes the meaning of the program that wrote them.

    Returns:
        DatasetInfo.

    Raises:
        InputError: If no file matches, the folder has an info file already, a file is damaged, or a
            record has other features or lengths, ids beyond the vocabulary, or other values than 0
            and 1 where only these are possible.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"`{folder}` does not exist or is not a folder.")
    paths = sorted(path for path in folder.glob(_PATTERN) if path.is_file())
    if not paths:
        raise InputError(f"`{folder}` contains no file that matches `{_PATTERN}`.")
    if (folder / INFO_FILE).exists():
        raise InputError(f"`{folder}` already has a {INFO_FILE}.")
    beside = folder / TOKENIZER_FOLDER
    if tokenizer and beside.exists() and Tokenizer.load(beside).digest != tokenizer.digest:
        raise InputError(
            f"`{beside}` must contain the given tokenizer, but contains another one. Remove it and "
            "repeat the command."
        )
    vocab_size = tokenizer.vocab_size if tokenizer else vocab_size
    if not vocab_size:
        raise InputError("`vocab_size` is required if no tokenizer is given.")
    if objective not in (None, *LABELS):
        raise InputError(f"`objective` must be one of {[*LABELS]}. Received: {objective!r}.")

    scans = {path.name: _scan(path) for path in paths}
    info, writer = _describe(folder, scans, vocab_size)
    for path in paths:
        _check(path, scans[path.name], info)
    info = info.replace(
        objective=objective or writer.objective,
        tokenizer_digest=tokenizer.digest if tokenizer else None,
        shards=tuple(ShardInfo.of(name, scan.offsets, scan.sha256) for name, scan in scans.items()),
    )
    logger.info("records of %s; a label of 1 means: %s", writer.name, LABELS[info.objective])
    if tokenizer and not beside.exists():
        with whole_folder(beside) as temporary:
            tokenizer.save(temporary)
    info.save(folder)
    return info


def _scan(path):
    scan = scan_records(path)
    if scan.fault:
        raise InputError(
            f"`{path}` is not a TFRecord file, or is damaged: {scan.fault}. If it is compressed, "
            "unpack it with `gunzip`, because records are read by number."
        )
    return scan


def _describe(folder, scans, vocab_size):
    """Derives a DatasetInfo without shards, and the Writer, from the first record."""
    name = next((name for name, scan in scans.items() if len(scan.offsets) > 1), None)
    if name is None:
        raise InputError(
            f"The files must contain records. Received: no record in {', '.join(scans)}."
        )
    try:
        features = decode_instance(frame_at(map_file(folder / name), scans[name].offsets, 0)[0])
    except InputError as error:
        raise InputError(f"Record 0 of `{name}`: {error}") from error
    writer = _find_writer(features)
    info = DatasetInfo(
        max_seq_length=len(features[writer.renamed.get("input_ids", "input_ids")]),
        max_predictions_per_seq=len(features["masked_lm_positions"]),
        vocab_size=vocab_size,
        shards=(),
        builder_version=writer.name,
        feature_names=writer.renamed,
    )
    return info, writer


def _check(path, scan, info):
    """Reads all records of a file; raises InputError with the first fault."""
    data, num_records = map_file(path), len(scan.offsets) - 1
    for first in range(0, num_records, _RECORDS_AT_ONCE):
        numbers = range(first, min(first + _RECORDS_AT_ONCE, num_records))
        records = [frame_at(data, scan.offsets, number)[0] for number in numbers]

        def name_of(row, first=first):
            return f"Record {first + row} of `{path}`"

        columns = decode_batch(records, info, name_of=name_of)
        for feature in _ZERO_OR_ONE:
            wrong = (columns[feature] != 0) & (columns[feature] != 1)
            if wrong.any():
                row, position = np.argwhere(wrong)[0]
                raise InputError(
                    f"{name_of(row)} must have only 0 and 1 in `{feature}`, but has "
                    f"{columns[feature][row, position]}."
                )


def _find_writer(features):
    """Finds the program that wrote a record by its features (dict, see `decode_instance`)."""
    for writer in WRITERS:
        names = {writer.renamed.get(name, name) for name in REQUIRED_FEATURES}
        if features.keys() >= {*names, *writer.marks}:
            return writer
    listing = ", ".join(sorted(features)) or "none"
    wanted = ", ".join(REQUIRED_FEATURES)
    raise InputError(f"Records must have the features {wanted}. Received: {listing}.")
