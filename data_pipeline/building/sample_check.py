"""Looks at a sample of a corpus before a build, which may take hours."""

import logging
from collections import Counter
from dataclasses import replace

import numpy as np

from data_pipeline.config import PretrainingDataConfig
from data_pipeline.text.corpus import read_range
from data_pipeline.text.letters import check_is_english
from data_pipeline.text.sentences import split_sentences
from data_pipeline.text.text_files import TextRange
from data_pipeline.tokenizers.tokenization import Tokenizer

logger = logging.getLogger(__name__)

_SAMPLE_CHARS = 400_000
#: Fraction of unknown tokens from which there is a warning.
_MOST_UNKNOWN = 0.03
#: Ranges that the sample is taken from.
_MOST_RANGES = 16


def check_sample(
    ranges: list[TextRange], tokenizer: Tokenizer | None, config: PretrainingDataConfig
) -> None:
    """Checks settings against a sample of about 0.4 MB, and warns of many unknown tokens.

    Without a tokenizer, tokens are not looked at.

    Raises:
        InputError: If sentences are split by rules and the language, which is not given, is not
            English, see `check_is_english`; or as `read_range`.
    """
    characters: Counter[str] = Counter()
    num_tokens = num_unknown = 0
    depends_on_language = False
    for document in _sample_documents(ranges):
        depends_on_language |= config.splitter == "sentencex" and not document.sentences_given
        characters.update(document.text)
        if tokenizer is None:
            continue
        sentences = split_sentences(document, config.splitter, config.language)
        ids, _ = tokenizer.encode_sentences(sentences)
        num_tokens += len(ids)
        num_unknown += int((ids == tokenizer.unk_id).sum())
    if depends_on_language and "language" not in config.model_fields_set:
        check_is_english(characters, by_script=True)
    if num_unknown > _MOST_UNKNOWN * num_tokens:
        logger.warning(
            "The tokenizer does not know %.1f %% of the tokens of the corpus, from which a model "
            "learns nothing.",
            100 * num_unknown / num_tokens,
        )


def _sample_documents(ranges):
    """Yields documents of about `_SAMPLE_CHARS` characters, spread over the ranges of a corpus.

    The last document of a range ends after the paragraph that completes its part of the sample.
    """
    numbers = np.linspace(0, len(ranges) - 1, _MOST_RANGES).astype(int) if ranges else []
    chosen = [ranges[number] for number in np.unique(numbers)]
    for text_range in chosen:
        left = _SAMPLE_CHARS / len(chosen)
        for document in read_range(text_range):
            count = 0
            while left > 0 and count < len(document.paragraphs):
                left -= len(document.paragraphs[count])
                count += 1
            yield replace(document, paragraphs=document.paragraphs[:count])
            if left <= 0:
                break
