"""The text of a study: its training and its held-out part, and shares of the training part."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from albert_keras.studies.folder import content_id
from data_pipeline.building.encoding import corpus_digest, range_digest
from data_pipeline.errors import InputError
from data_pipeline.text.corpus import corpus_ranges, read_corpus, split_heldout, write_jsonl

logger = logging.getLogger(__name__)

#: Fraction of the documents that is held out unless other text is given for that.
HELD_OUT_FRACTION = 0.1


class StudyCorpus(NamedTuple):
    """Sources of text, as `read_corpus` takes them."""

    training: tuple[str, ...]
    held_out: tuple[str, ...]
    training_format: str
    held_out_format: str
    digest: str  # of the training text
    held_out_digest: str


def digest_of(sources: Sequence[str], corpus_format: str) -> str:
    """Returns the digest of the text of sources, whatever their names."""
    return corpus_digest(map(range_digest, corpus_ranges(list(sources), corpus_format)))


def prepare_corpus(
    out: Path, corpus: Sequence[str], eval_corpus: Sequence[str], corpus_format: str
) -> StudyCorpus:
    """Returns the text of a study; without `eval_corpus` a tenth of the documents is held out.

    Raises:
        InputError: If a source cannot be read, both parts are the same text, or there is only one
            document and none to hold out.
    """
    digest = digest_of(corpus, corpus_format)
    if eval_corpus:
        held_out_digest = digest_of(eval_corpus, corpus_format)
        if digest == held_out_digest:
            raise InputError(
                "The text of `--eval-corpus` must not be the text of `--corpus`: the scores would "
                f"be training scores. Received: {', '.join(eval_corpus)} for both."
            )
        formats = (corpus_format, corpus_format)
        return StudyCorpus(tuple(corpus), tuple(eval_corpus), *formats, digest, held_out_digest)
    folder = out / "corpus" / content_id("split", digest, HELD_OUT_FRACTION)
    paths = folder / "train.jsonl", folder / "heldout.jsonl"
    if not all(path.is_file() for path in paths):
        parts = split_heldout(read_corpus(list(corpus), corpus_format), HELD_OUT_FRACTION)
        for documents, path in zip(parts, paths, strict=True):
            write_jsonl(documents, path)
        logger.info("held out %d of %d documents", len(parts[1]), sum(map(len, parts)))
    train, held_out = ((str(path),) for path in paths)
    digests = (digest_of(train, "jsonl"), digest_of(held_out, "jsonl"))
    return StudyCorpus(train, held_out, "jsonl", "jsonl", *digests)


def share_of(out: Path, corpus: StudyCorpus, share: float) -> tuple[tuple[str, ...], str]:
    """Returns sources of a share of the training text, and their format.

    Whole documents are taken in the order of their digests until they have this share of the
    characters, so a smaller share is part of a larger one.
    """
    if share >= 1:
        return corpus.training, corpus.training_format
    path = out / "corpus" / content_id("share", corpus.digest, share) / "train.jsonl"
    if not path.is_file():
        documents = sorted(
            read_corpus(list(corpus.training), corpus.training_format),
            key=lambda document: document.digest,
        )
        limit = share * sum(len(document.text) for document in documents)
        taken, size = [], 0
        for document in documents:
            if taken and size >= limit:
                break
            taken.append(document)
            size += len(document.text)
        write_jsonl(taken, path)
        logger.info("using %d of %d documents, a share of %g", len(taken), len(documents), share)
    return (str(path),), "jsonl"
