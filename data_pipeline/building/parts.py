"""The first pass, part by part: a corpus → parts → spill."""

import hashlib
import itertools
from typing import NamedTuple

from data_pipeline.building.encoding import encode_document, text_bytes
from data_pipeline.building.spill import finished_part, write_part
from data_pipeline.text.corpus import read_range
from data_pipeline.text.storage import open_to_read

#: Parts have equal sizes, of at least and at most as many bytes; there are about this many.
_SMALLEST_PART, _LARGEST_PART, _NUM_PARTS = 1 << 20, 64 << 20, 64
#: Documents handed over one by one are put together to parts of so many characters.
_CHARACTERS_PER_PART = 1 << 20
_BLOCK = 1 << 20


class Part(NamedTuple):
    """Some of a corpus, to be encoded in one go.

    Attributes:
        number: int.
        ranges: list of TextRange. Read by whoever encodes them.
        documents: list of Document. Given instead of ranges.
    """

    number: int
    ranges: list
    documents: list


class EncodedPart(NamedTuple):
    """A part that is spilled to disk.

    Attributes:
        number: int.
        content: list of str. Digest of each range, or one of the documents.
        counts: dict.
        reused: bool. Whether it lay there from an earlier attempt.
    """

    number: int
    content: list
    counts: dict
    reused: bool


def parts_of_ranges(ranges):
    """Puts text ranges together to parts of about equal size: list of Part."""
    sizes = [text_range.num_bytes for text_range in ranges]
    wanted = min(max(sum(sizes) // _NUM_PARTS, _SMALLEST_PART), _LARGEST_PART)
    parts, held, size = [], [], 0
    for text_range in ranges:
        held.append(text_range)
        size += text_range.num_bytes
        if size >= wanted:
            parts.append(Part(len(parts), held, []))
            held, size = [], 0
    return [*parts, Part(len(parts), held, [])] if held else parts


def parts_of_documents(documents):
    """Yields parts of the documents of an iterable."""
    numbers = itertools.count()
    held, size = [], 0
    for document in documents:
        held.append(document)
        size += text_bytes(document)
        if size >= _CHARACTERS_PER_PART:
            yield Part(next(numbers), [], held)
            held, size = [], 0
    if held:
        yield Part(next(numbers), [], held)


def encode_part(part, work, tokenizer, config, progress):
    """Encodes a part and spills it, unless the same content was spilled there before.

    Args:
        part: Part.
        work: Path. Folder of the spill.
        tokenizer: Tokenizer.
        config: PretrainingDataConfig.
        progress: object with `add(bytes=..., documents=...)`.

    Returns:
        EncodedPart.
    """
    content = [range_digest(text_range) for text_range in part.ranges]
    if not part.ranges:
        content = [_documents_digest(part.documents)]
    finished = finished_part(work, part.number)
    if finished and finished.content == content:
        return EncodedPart(part.number, content, finished.counts, True)

    def encoded():
        sources = map(read_range, part.ranges) if part.ranges else [part.documents]
        for document in itertools.chain.from_iterable(sources):
            size = text_bytes(document)
            encoded_document = encode_document(document, tokenizer, config)
            counts = {"bytes": size, "documents_without_text": int(encoded_document is None)}
            progress.add(bytes=size, documents=1)
            yield encoded_document, counts

    info = write_part(work, part.number, content, encoded())
    return EncodedPart(part.number, info.content, info.counts, False)


def range_digest(text_range):
    """Hashes the bytes of a text range together with the name of its format."""
    digest = hashlib.sha256(text_range.format.encode())
    with open_to_read(text_range.path, text_range.begin, text_range.end) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def corpus_digest(contents):
    """Hashes the digests of all ranges of a corpus, whatever files they lie in and in any order."""
    return hashlib.sha256("\n".join(sorted(contents)).encode()).hexdigest()


def _documents_digest(documents):
    digest = hashlib.sha256()
    for document in documents:
        text = "\n".join((str(document.sentences_given), *document.paragraphs, ""))
        digest.update(text.encode())
    return digest.hexdigest()
