"""What a text is, from a sample: its language, and how many bytes make a token."""

import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from data_pipeline.files import temporary_folder
from data_pipeline.text.corpus import corpus_ranges
from data_pipeline.text.sample import sample_documents
from data_pipeline.tokenizers.tokenization import Tokenizer

logger = logging.getLogger(__name__)

#: Characters of a sample.
_SAMPLE_CHARS = 200_000
#: Pieces of a vocabulary that is trained on the sample, which need not have rare characters.
_SAMPLE_PIECES, _SAMPLE_COVERAGE = 2000, 0.995
#: Least pieces of a vocabulary for each character of the sample; the text has more characters.
_PIECES_PER_CHARACTER = 1.5
#: A vocabulary of twice the size has so many more bytes per token: English novels have 3.94 with
#: 8,000 pieces and 4.18 with 16,000, for which 3.93 and 4.21 are expected from such a sample.
_MORE_PER_DOUBLING = 0.085
#: Bytes per token of English with 8,000 pieces.
_ENGLISH_BYTES = 3.94


class Text(NamedTuple):
    """A corpus, as far as a plan depends on it."""

    num_bytes: float
    language: str
    bytes_per_token: float
    tokens: int
    reason: str  # what the numbers are based on
    least_pieces: int = 0  # that a vocabulary needs for the characters


def text_of_size(num_bytes: float, vocab_size: int) -> Text:
    """Describes a text of which only the size is known; it is taken for English."""
    bytes_per_token = _ENGLISH_BYTES * _growth(8000, vocab_size)
    tokens = round(num_bytes / bytes_per_token)
    return Text(num_bytes, "en", bytes_per_token, tokens, "as English: the text is not here")


def examine_text(
    sources: Sequence[str],
    corpus_format: str,
    vocab_size: int,
    tokenizer: Tokenizer | None = None,
    language: str | None = None,
) -> Text:
    """Examines a sample of a corpus.

    Args:
        sources: Files, folders and patterns.
        corpus_format: As in `read_corpus`.
        vocab_size: Pieces of the vocabulary, V.
        tokenizer: The tokenizer that will be used. None trains a small one on the sample, and
            expects more bytes per token of a larger one.
        language: Code of the language. None is English.

    Raises:
        InputError: As `read_corpus`.
    """
    logger.info("examining a sample of the text")
    ranges = corpus_ranges(list(sources), corpus_format)
    num_bytes = sum(one.num_bytes for one in ranges)
    documents = sample_documents(ranges, _SAMPLE_CHARS)
    paragraphs = [paragraph for document in documents for paragraph in document.paragraphs]
    sample = "\n".join(paragraphs)
    reason = "tokens counted in a sample"
    least = math.ceil(_PIECES_PER_CHARACTER * len(set(sample)) / 1000) * 1000
    if tokenizer is not None:
        bytes_per_token = _bytes_per_token(tokenizer, paragraphs)
    else:
        from data_pipeline.tokenizers.vocabulary import train_vocabulary

        with temporary_folder() as folder:
            trained = train_vocabulary(
                paragraphs,
                Path(folder) / "sample",
                max(least, _SAMPLE_PIECES),
                language=language,
                character_coverage=_SAMPLE_COVERAGE,
                hard_limit=False,
            )
            small = Tokenizer.load(trained.path)
            bytes_per_token = _bytes_per_token(small, paragraphs)
            bytes_per_token *= _growth(small.vocab_size, max(vocab_size, least))
    tokens = round(num_bytes / bytes_per_token)
    return Text(num_bytes, language or "en", bytes_per_token, tokens, reason, least)


def _bytes_per_token(tokenizer, paragraphs):
    ids, _ = tokenizer.encode_sentences(paragraphs)
    return sum(len(one.encode()) for one in paragraphs) / max(1, len(ids))


def _growth(from_size, to_size):
    return 1 + _MORE_PER_DOUBLING * math.log2(to_size / from_size)
