"""Splits a corpus into a training part and a held-out part, and writes corpus files."""

import json
from pathlib import Path

from data_pipeline.errors import InputError
from data_pipeline.files import whole_file


def split_heldout(documents, fraction=0.05):
    """Splits documents into a training part and a held-out part.

    The digest of a document decides, so neither its position nor other documents matter. If there
    are different texts, each part gets at least one.

    Args:
        documents: iterable of Document.
        fraction: float. Expected fraction of held-out documents, between 0 and 1.

    Returns:
        tuple of two lists of Document: train, held out. Each in the order received.

    Raises:
        InputError: If `fraction` is out of range, or there are fewer than two different texts.
    """
    if not 0 < fraction < 1:
        raise InputError(f"`fraction` must be between 0 and 1. Received: {fraction}.")
    documents = list(documents)
    digests = [document.digest for document in documents]
    ranked = sorted(set(digests))
    if len(ranked) < 2:
        raise InputError("A held-out part needs at least two different documents.")
    limit = f"{int(fraction * 16**8):08x}"
    # The bounds keep one text in either part of a small corpus.
    limit = min(max(limit, ranked[1]), ranked[-1])
    train = [item for item, digest in zip(documents, digests, strict=True) if digest >= limit]
    heldout = [item for item, digest in zip(documents, digests, strict=True) if digest < limit]
    return train, heldout


def write_jsonl(documents, path):
    """Writes documents as JSON lines for `read_corpus`: the complete file or none.

    Args:
        documents: iterable of Document. "id" is the name, "text" the paragraphs, one per line.
        path: str or Path. An older file of this name is replaced.

    Raises:
        InputError: If there is no document, or `path` cannot be written.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with (
            whole_file(path) as temporary,
            open(temporary, "w", encoding="utf-8", newline="\n") as file,
        ):
            for document in documents:
                record = {"id": document.name, "text": document.text}
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
            if not file.tell():
                raise InputError(f"`{path}` is not written: there is no document.")
    except OSError as error:
        raise InputError(f"`{path}` cannot be written: {error.strerror}.") from error
