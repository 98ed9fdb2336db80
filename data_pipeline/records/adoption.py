"""Records made by other programs: checked, and given the info file they lack.

The files stay as they are: the info file tells the reader what they call their features. Only what
is compressed is written anew beside them, because records are read by number.
"""

import contextlib
import logging
from pathlib import Path

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.files import whole_folder
from data_pipeline.reader.decoding import decode_batch
from data_pipeline.records.dataset_info import INFO_FILE, TOKENIZER_FOLDER, DatasetInfo, ShardInfo
from data_pipeline.records.examples import decode_instance
from data_pipeline.records.foreign_records import LABELS, find_writer, is_gzip, unpack
from data_pipeline.records.record_files import map_file, scan_records

logger = logging.getLogger(__name__)

#: Folder of what was compressed.
UNPACKED = "unpacked"

_HEADER, _FOOTER = 12, 4  # around each record
_TOGETHER = 1024
#: Values that a feature may have besides what the reader checks.
_ZERO_OR_ONE = ("input_mask", "segment_ids", "masked_lm_weights", "next_sentence_labels")


def adopt_records(
    folder,
    max_seq_length=None,
    max_predictions_per_seq=None,
    tokenizer=None,
    vocab_size=None,
    pattern="*.tf*record*",
    objective=None,
):
    """Writes `dataset_info.json` for record files that came without one.

    Every record is read once. They are those of one of `foreign_records.WRITERS`, found by the
    features of the first; others may be there. Compressed files are unpacked into `unpacked/`.

    Args:
        folder: str or Path. Where the files lie.
        max_seq_length: int or None. S of the program that wrote them; None takes that of the first
            record.
        max_predictions_per_seq: int or None. P of it, likewise.
        tokenizer: Tokenizer. The one they were made with, copied beside them; without it
            a model can be trained on them but not exported.
        vocab_size: int or None. Number of pieces; needed if `tokenizer` is None.
        pattern: str. Which files are records.
        objective: str or None. What a label of 1 means: "sop" swapped, "nsp" a random second
            segment, "none" nothing to learn. None: as the program that wrote them means it.

    Returns:
        DatasetInfo.

    Raises:
        InputError: If there are no such files, they already have an info file, one is damaged, or a
            record does not have these features and lengths, holds ids beyond the vocabulary or
            other values where 0 and 1 are possible.
    """
    folder = Path(folder)
    paths = sorted(path for path in folder.glob(pattern) if path.is_file())
    if not paths:
        raise InputError(f"`{folder}` holds no file that matches `{pattern}`.")
    if (folder / INFO_FILE).exists():
        raise InputError(f"`{folder}` has a {INFO_FILE} already.")
    vocab_size = tokenizer.vocab_size if tokenizer else vocab_size
    if not vocab_size:
        raise InputError("`vocab_size` is needed when no tokenizer is given.")
    if objective not in (None, *LABELS):
        raise InputError(f"`objective` should be one of {[*LABELS]}. Received: {objective!r}.")

    with contextlib.ExitStack() as stack:
        files = _unpacked(folder, paths, stack)
        scans = {name: _scan(path, folder / name) for name, path in files.items()}
        lengths = max_seq_length, max_predictions_per_seq
        info, writer = _describe(files, scans, *lengths, vocab_size)
        for name, path in files.items():
            _check(path, scans[name], folder / name, info)
        info = info.replace(
            objective=objective or writer.objective,
            tokenizer_digest=tokenizer.digest if tokenizer else None,
            shards=tuple(
                ShardInfo(
                    file=name,
                    num_records=len(scan.offsets) - 1,
                    num_bytes=scan.num_bytes,
                    sha256=scan.sha256,
                )
                for name, scan in scans.items()
            ),
        )
    logger.info("records as of %s; a label of 1 means: %s", writer.name, LABELS[info.objective])
    if tokenizer and not (folder / TOKENIZER_FOLDER).exists():
        with whole_folder(folder / TOKENIZER_FOLDER) as temporary:
            tokenizer.save(temporary)
    info.save(folder)
    return info


def _unpacked(folder, paths, stack):
    """Returns the files by their names as shards; those unpacked get theirs when `stack` ends."""
    packed = [path for path in paths if is_gzip(path)]
    files = {path.name: path for path in paths if path not in packed}
    if not packed:
        return files
    target = folder / UNPACKED
    if target.exists():
        raise InputError(f"`{target}` should not be there: compressed files are unpacked into it.")
    temporary = stack.enter_context(whole_folder(target))
    for path in packed:
        logger.info("unpacking `%s`", path)
        name = path.name.removesuffix(".gz")
        if name in files or (temporary / name).exists():
            raise InputError(f"`{folder}` should hold `{name}` once, packed or not.")
        unpack(path, temporary / name)
        files[f"{UNPACKED}/{name}"] = temporary / name
    return files


def _scan(path, shown):
    scan = scan_records(path)
    if scan.fault:
        raise InputError(f"`{shown}` is no TFRecord file, or is damaged: {scan.fault}.")
    return scan


def _describe(files, scans, max_seq_length, max_predictions_per_seq, vocab_size):
    """Returns what the first record tells: DatasetInfo without shards, and Writer."""
    name = next((name for name, scan in scans.items() if len(scan.offsets) > 1), None)
    if name is None:
        raise InputError(f"The files should hold records. Received: none, in {', '.join(files)}.")
    (first,) = _records(files[name], scans[name].offsets[:2])
    try:
        features = decode_instance(first)
    except InputError as error:
        raise InputError(f"Record 0 of `{name}`: {error}") from error
    writer = find_writer(features)
    length = len(features[writer.renamed.get("input_ids", "input_ids")])
    info = DatasetInfo(
        max_seq_length=max_seq_length or length,
        max_predictions_per_seq=max_predictions_per_seq or len(features["masked_lm_positions"]),
        vocab_size=vocab_size,
        shards=(),
        builder_version=writer.name,
        feature_names=writer.renamed,
    )
    return info, writer


def _check(path, scan, shown, info):
    """Reads all records of a file; raises InputError with what is wrong first."""
    for first in range(0, len(scan.offsets) - 1, _TOGETHER):
        records = list(_records(path, scan.offsets[first : first + _TOGETHER + 1]))

        def name_of(row, first=first):
            return f"Record {first + row} of `{shown}`"

        columns = decode_batch(records, info, name_of=name_of)
        for feature in _ZERO_OR_ONE:
            wrong = (columns[feature] != 0) & (columns[feature] != 1)
            if wrong.any():
                row, place = np.argwhere(wrong)[0]
                raise InputError(
                    f"{name_of(row)} should have 0 and 1 in `{feature}`, but has "
                    f"{columns[feature][row, place]}."
                )


def _records(path, offsets):
    """Yields the records of a file whose frames have these edges (uint64 [N + 1])."""
    data = map_file(path)
    edges = offsets.astype(np.int64).tolist()
    for begin, end in zip(edges, edges[1:], strict=False):
        yield data[begin + _HEADER : end - _FOOTER]
