"""The first pass: a corpus → parts → token ids in temporary files, once for all copies.

An encoded part is four files: the ids, the lengths of the sentences, a table with one row per
document, and last of all a JSON file that says what the part was made from. A part whose JSON file
exists is complete.
"""

import contextlib
import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.files import whole_file, write_json
from data_pipeline.limits import read_json
from data_pipeline.text.corpus import read_range
from data_pipeline.text.sentences import split_sentences
from data_pipeline.text.storage import open_to_read
from data_pipeline.text.text_files import TextRange

#: Number of parts of equal size, unless they would be smaller or larger than the limits in bytes.
_NUM_PARTS = 64
_SMALLEST_PART = 1 << 20
_LARGEST_PART = 64 << 20
#: Documents that are passed one by one are collected into parts of this size in bytes.
_BYTES_PER_PART = 1 << 20
_BLOCK = 1 << 20

#: One row per document: where its tokens and sentences begin in the part, and their numbers.
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


class EncodedDocument(NamedTuple):
    """The tokens of a document."""

    ids: np.ndarray  # uint16 or uint32 [T], tokens of all sentences, end to end
    lengths: np.ndarray  # uint32 [n], tokens of each sentence, none of them 0
    digest: bytes  # content address: equal digests mean equal ids and lengths


def ids_dtype(vocab_size: int) -> np.dtype:
    """Returns the smaller of two little-endian types that can store all ids of a vocabulary."""
    return np.dtype("<u2" if vocab_size <= 1 << 16 else "<u4")


def encode_document(document, tokenizer, config) -> EncodedDocument | None:
    """Splits a document into sentences and encodes them; returns None if it has no tokens."""
    sentences = split_sentences(document, config.splitter, config.language)
    ids, lengths = tokenizer.encode_sentences(sentences)
    if not len(ids):
        return None
    ids = ids.astype(ids_dtype(tokenizer.vocab_size))
    lengths = lengths[lengths > 0].astype(LENGTH)
    digest = hashlib.blake2b(lengths.tobytes() + ids.tobytes(), digest_size=16).digest()
    return EncodedDocument(ids, lengths, digest)


def text_bytes(document) -> int:
    """Returns the number of bytes of a document's text in UTF-8, including line ends."""
    return sum(len(paragraph.encode()) + 1 for paragraph in document.paragraphs)


def encode_documents(documents, tokenizer, config, counts) -> Iterator[EncodedDocument]:
    """Yields the documents that have tokens, encoded; adds the statistics of all to `counts`."""
    for document in documents:
        encoded = encode_document(document, tokenizer, config)
        counts.update(bytes=text_bytes(document), documents_without_text=int(encoded is None))
        if encoded is not None:
            sizes = {"sentences": len(encoded.lengths), "pieces": len(encoded.ids)}
            counts.update(documents=1, **sizes)
            yield encoded


class Part(NamedTuple):
    """A part of a corpus that is encoded at once."""

    number: int
    items: list  # of TextRange, or of Document


class EncodedPart(NamedTuple):
    """An encoded part."""

    number: int
    content: list[str]  # digest of each text range, or one digest of the documents
    counts: dict[str, int]


def parts_of_ranges(ranges) -> list[Part]:
    """Groups text ranges into parts of about equal size."""
    sizes = [text_range.num_bytes for text_range in ranges]
    part_size = min(max(sum(sizes) // _NUM_PARTS, _SMALLEST_PART), _LARGEST_PART)
    groups = _grouped(ranges, lambda text_range: text_range.num_bytes, part_size)
    return list(itertools.starmap(Part, enumerate(groups)))


def parts_of_documents(documents) -> Iterator[Part]:
    """Groups documents into parts."""
    return itertools.starmap(Part, enumerate(_grouped(documents, text_bytes, _BYTES_PER_PART)))


def _grouped(items, size_of, min_size):
    group, size = [], 0
    for item in items:
        group.append(item)
        size += size_of(item)
        if size >= min_size:
            yield group
            group, size = [], 0
    if group:
        yield group


def encode_part(context, part: Part) -> EncodedPart:
    """Encodes a part and writes its files, unless files of the same content already exist."""
    is_text = isinstance(part.items[0], TextRange)
    content = list(map(range_digest, part.items)) if is_text else [_documents_digest(part.items)]
    counts = _finished_counts(context.work, part.number, content)
    if counts is None:
        counts = Counter(bytes=0, documents=0, documents_without_text=0, sentences=0, pieces=0)
        sources = map(read_range, part.items) if is_text else [part.items]
        documents = itertools.chain.from_iterable(sources)
        encoded = encode_documents(documents, context.tokenizer, context.config, counts)
        write_part(context.work, part.number, encoded)
        described = {"content": content, "counts": counts}
        write_json(_path(context.work, part.number, "json"), described, indent=None)
    return EncodedPart(part.number, content, dict(counts))


def range_digest(text_range) -> str:
    """Hashes the bytes of a text range together with the name of its format."""
    digest = hashlib.sha256(text_range.format.encode())
    with open_to_read(text_range.path, text_range.begin, text_range.end) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def corpus_digest(contents) -> str:
    """Hashes the digests of all ranges of a corpus, independently of their files and order."""
    return hashlib.sha256("\n".join(sorted(contents)).encode()).hexdigest()


def _documents_digest(documents):
    digest = hashlib.sha256()
    for document in documents:
        text = "\n".join((str(document.sentences_given), *document.paragraphs, ""))
        digest.update(text.encode())
    return digest.hexdigest()


def _path(folder, part, kind):
    return folder / f"part-{part:06d}.{kind}"


def _finished_counts(folder, part, content):
    """Returns the counts of a part that was encoded from this content, or None."""
    try:
        info = read_json(_path(folder, part, "json"))
        return info["counts"] if info["content"] == content else None
    except (OSError, ValueError, TypeError, KeyError):
        return None


def write_part(folder: Path, part: int, documents: Iterable[EncodedDocument]) -> None:
    """Writes the files of an encoded part, except for the one that says that it is complete."""
    # The files are replaced one by one, and files of other content no longer count as complete.
    _path(folder, part, "json").unlink(missing_ok=True)
    rows = []
    token = sentence = 0
    with contextlib.ExitStack() as files:
        ids_file, lengths_file = (
            files.enter_context(open(files.enter_context(whole_file(path)), "wb"))
            for path in (_path(folder, part, "ids"), _path(folder, part, "lengths"))
        )
        for encoded in documents:
            ids_file.write(encoded.ids.tobytes())
            lengths_file.write(encoded.lengths.tobytes())
            digest = tuple(np.frombuffer(encoded.digest, "<u8"))
            rows.append((digest, token, sentence, len(encoded.ids), len(encoded.lengths)))
            token += len(encoded.ids)
            sentence += len(encoded.lengths)
    with whole_file(_path(folder, part, "documents")) as temporary:
        np.array(rows, DOCUMENT).tofile(temporary)


def read_documents(folder: Path, part: int) -> np.ndarray:
    """Returns the table of a part's documents, DOCUMENT [D]."""
    return np.fromfile(_path(folder, part, "documents"), DOCUMENT)


def gather(folder: Path, rows: np.ndarray, vocab_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Reads the documents of `rows`, ORDERED [D], from the encoded parts in a folder.

    Returns ids int32 [T] of all documents end to end, and sentence lengths int64 [n].
    """
    ids = np.empty(int(rows["num_pieces"].sum(dtype=np.int64)), np.int32)
    lengths = np.empty(int(rows["num_sentences"].sum(dtype=np.int64)), np.int64)
    # Documents are read in the order of the disk and stored in the order of the rows.
    disk_order = np.lexsort((rows["first_piece"], rows["part"]))
    for kind, array, dtype, first, count in (
        ("ids", ids, ids_dtype(vocab_size), "first_piece", "num_pieces"),
        ("lengths", lengths, LENGTH, "first_sentence", "num_sentences"),
    ):
        ends = rows[count].cumsum(dtype=np.int64)
        columns = rows["part"], rows[first], rows[count], ends
        ordered = zip(*(column[disk_order].tolist() for column in columns), strict=True)
        for part, documents in itertools.groupby(ordered, key=lambda document: document[0]):
            with open(_path(folder, part, kind), "rb") as file:
                for _, begin, size, end in documents:
                    file.seek(begin * dtype.itemsize)
                    content = file.read(size * dtype.itemsize)
                    array[end - size : end] = np.frombuffer(content, dtype)
    return ids, lengths
