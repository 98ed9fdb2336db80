"""Encoded documents on disk, between the two passes of a build.

A part of the corpus leaves four files: the ids, the lengths of the sentences, a table with one row
for each document, and last of all a JSON file that says what the part was made from. A part whose
JSON file is there is complete.
"""

import contextlib
import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.building.encoding import ids_dtype
from data_pipeline.files import whole_file

#: One row per document: where its pieces and sentences stand in the part, and how many they are.
DOCUMENT = np.dtype(
    [
        ("digest", "<u8", (2,)),
        ("first_piece", "<u8"),
        ("first_sentence", "<u8"),
        ("num_pieces", "<u4"),
        ("num_sentences", "<u4"),
    ]
)
LENGTH = np.dtype("<u4")


class PartInfo(NamedTuple):
    """What a finished part was made from.

    Attributes:
        content: list of str. Digest of each text range, or of the documents handed over.
        counts: dict. What was counted in it.
    """

    content: list
    counts: dict


def _path(folder, part, kind):
    return Path(folder) / f"part-{part:06d}.{kind}"


def finished_part(folder, part):
    """Returns the PartInfo of a finished part, or None."""
    try:
        return PartInfo(**json.loads(_path(folder, part, "json").read_text()))
    except (OSError, ValueError, TypeError):
        return None


def write_part(folder, part, content, documents):
    """Spills the documents of a part.

    Args:
        folder: Path.
        part: int. Number of the part.
        content: list of str. What to say of its origin.
        documents: iterable of (EncodedDocument or None, counts), in the order of the part.

    Returns:
        PartInfo.
    """
    rows, counts, piece, sentence = [], Counter(), 0, 0
    with contextlib.ExitStack() as files:
        ids_file, lengths_file = (
            files.enter_context(open(files.enter_context(whole_file(path)), "wb"))
            for path in (_path(folder, part, "ids"), _path(folder, part, "lengths"))
        )
        for encoded, counted in documents:
            counts.update(counted)
            if encoded is None:
                continue
            ids_file.write(encoded.ids.tobytes())
            lengths_file.write(encoded.lengths.tobytes())
            num_pieces, num_sentences = len(encoded.ids), len(encoded.lengths)
            digest = tuple(np.frombuffer(encoded.digest, "<u8"))
            rows.append((digest, piece, sentence, num_pieces, num_sentences))
            piece, sentence = piece + num_pieces, sentence + num_sentences
    counts.update(documents=len(rows), sentences=sentence, pieces=piece)
    with whole_file(_path(folder, part, "documents")) as temporary:
        np.array(rows, DOCUMENT).tofile(temporary)
    info = PartInfo(list(content), dict(counts))
    with whole_file(_path(folder, part, "json")) as temporary:
        temporary.write_text(json.dumps(info._asdict()))
    return info


def read_documents(folder, part):
    """Returns the table of a part's documents, DOCUMENT [D]."""
    return np.fromfile(_path(folder, part, "documents"), DOCUMENT)


def gather(folder, rows, vocab_size):
    """Reads documents from wherever they lie.

    Args:
        folder: Path.
        rows: structured array [D] with `part` and the fields of DOCUMENT: which, in which order.
        vocab_size: int.

    Returns:
        tuple. ids int32 [T] of all documents end to end, sentence lengths int64 [n].
    """
    ids = np.empty(int(rows["num_pieces"].sum(dtype=np.int64)), np.int32)
    lengths = np.empty(int(rows["num_sentences"].sum(dtype=np.int64)), np.int64)
    # Read in the order of the disk, put down in the order of the rows.
    disk_order = np.lexsort((rows["first_piece"], rows["part"]))
    for kind, array, dtype, first, count in (
        ("ids", ids, ids_dtype(vocab_size), "first_piece", "num_pieces"),
        ("lengths", lengths, LENGTH, "first_sentence", "num_sentences"),
    ):
        ends = rows[count].cumsum(dtype=np.int64)
        places = zip(
            rows["part"][disk_order].tolist(),
            rows[first][disk_order].tolist(),
            rows[count][disk_order].tolist(),
            ends[disk_order].tolist(),
            strict=True,
        )
        open_part, file = None, None
        try:
            for part, begin, size, end in places:
                if part != open_part:
                    if file:
                        file.close()
                    open_part, file = part, open(_path(folder, part, kind), "rb")
                file.seek(begin * dtype.itemsize)
                array[end - size : end] = np.frombuffer(file.read(size * dtype.itemsize), dtype)
        finally:
            if file:
                file.close()
    return ids, lengths
