"""Looks at the beginning of a corpus before a build, which may take hours."""

import itertools
import logging
from collections import Counter

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


def check_sample(
    ranges: list[TextRange], tokenizer: Tokenizer | None, config: PretrainingDataConfig
) -> None:
    """Checks settings against the first 0.4 MB of a corpus, and warns of many unknown tokens.

    Without a tokenizer, tokens are not looked at.

    Raises:
        InputError: If sentences are split by rules and the language, which is not given, is not
            English, see `check_is_english`; or as `read_range`.
    """
    characters: Counter[str] = Counter()
    sentences: list[str] = []
    depends_on_language = False
    for document in itertools.chain.from_iterable(map(read_range, ranges)):
        depends_on_language |= config.splitter == "sentencex" and not document.sentences_given
        characters.update(document.text)
        sentences += split_sentences(document, config.splitter, config.language)
        if characters.total() >= _SAMPLE_CHARS:
            break
    if depends_on_language and "language" not in config.model_fields_set:
        check_is_english(characters)
    if tokenizer is None or not sentences:
        return
    ids, _ = tokenizer.encode_sentences(sentences)
    unknown = float((ids == tokenizer.unk_id).mean())
    if unknown > _MOST_UNKNOWN:
        logger.warning(
            "The tokenizer does not know %.1f %% of the tokens of the corpus, from which a model "
            "learns nothing.",
            100 * unknown,
        )
