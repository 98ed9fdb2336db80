"""Documents → pieces of sentences: the costly step, done once whatever the number of copies."""

import hashlib
from typing import NamedTuple

import numpy as np

from data_pipeline.text.sentences import split_sentences


class EncodedDocument(NamedTuple):
    """The pieces of a document.

    Attributes:
        ids: uint16 or uint32 [T]. Pieces of all sentences, end to end.
        lengths: uint32 [n]. Pieces of each sentence, none of them 0.
        digest: bytes of 16. Content address: equal digests, equal ids and lengths.
    """

    ids: np.ndarray
    lengths: np.ndarray
    digest: bytes


def ids_dtype(vocab_size):
    """Returns the smallest of two little-endian types that holds all ids of a vocabulary."""
    return np.dtype("<u2" if vocab_size <= 1 << 16 else "<u4")


def encode_document(document, tokenizer, config):
    """Splits a document into sentences and encodes them.

    Args:
        document: Document.
        tokenizer: Tokenizer.
        config: PretrainingDataConfig.

    Returns:
        EncodedDocument, or None if there is no piece in it.
    """
    sentences = split_sentences(document, config.splitter, config.language)
    ids, lengths = tokenizer.encode_sentences(sentences)
    if not len(ids):
        return None
    ids = ids.astype(ids_dtype(tokenizer.vocab_size))
    lengths = lengths[lengths > 0].astype("<u4")
    digest = hashlib.blake2b(lengths.tobytes() + ids.tobytes(), digest_size=16).digest()
    return EncodedDocument(ids, lengths, digest)


def text_bytes(document):
    """Counts the bytes of a document's text in UTF-8, line ends included."""
    return sum(len(paragraph.encode()) + 1 for paragraph in document.paragraphs)
