"""A corpus in two parts, one to train on and one to measure on, as ordinary corpus files."""

import json
from pathlib import Path

from data_pipeline.errors import InputError
from data_pipeline.files import whole_file


def split_heldout(documents, share=0.05):
    """Splits documents into a part to train on and a part to measure on.

    A document's digest decides, so neither order nor additions move the others. Of two or more
    documents with different texts, each part gets at least one.

    Args:
        documents: iterable of Document.
        share: float. Expected share of the held-out part, between 0 and 1.

    Returns:
        tuple of two lists of Document: train, held out. Each in the order received.

    Raises:
        InputError: If `share` is out of range, or there are not two different texts.
    """
    if not 0 < share < 1:
        raise InputError(f"`share` should lie between 0 and 1. Received: {share}.")
    documents = list(documents)
    digests = [document.digest for document in documents]
    ranked = sorted(set(digests))
    if len(ranked) < 2:
        raise InputError("A held-out part needs two different documents at least.")
    limit = f"{int(share * 16**8):08x}"
    # The bounds keep one text on either side when the corpus is small.
    limit = min(max(limit, ranked[1]), ranked[-1])
    train = [item for item, digest in zip(documents, digests, strict=True) if digest >= limit]
    heldout = [item for item, digest in zip(documents, digests, strict=True) if digest < limit]
    return train, heldout


def write_jsonl(documents, path):
    """Writes documents as JSON lines that `read_corpus` reads back: the whole file or none.

    Args:
        documents: iterable of Document. "id" is the name, "text" the paragraphs, one per line.
        path: str or Path. An older file of this name is replaced.

    Raises:
        InputError: If there is no document, or `path` cannot be written.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_lines(documents, path)
    except OSError as error:
        raise InputError(f"`{path}` cannot be written: {error.strerror}.") from error


def _write_lines(documents, path):
    with whole_file(path) as temporary:
        with open(temporary, "w", encoding="utf-8", newline="\n") as file:
            for document in documents:
                record = {"id": document.name, "text": document.text}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
            if not file.tell():
                raise InputError(f"`{path}` would be empty: there is no document to write.")
