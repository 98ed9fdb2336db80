"""Looks at a small sample of a corpus before a build, and warns where the settings do not suit it.

`corpus_check.py` reads much more and reports everything.
"""

import itertools
import logging
from pathlib import Path

import numpy as np

from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from data_pipeline.reports.corpus_preview import RecordPreview
from data_pipeline.reports.corpus_statistics import (
    Characters,
    expected_scripts,
    languages_of_script,
)
from data_pipeline.text.corpus import corpus_ranges, read_range
from data_pipeline.text.sentences import check_splitter, split_sentences
from data_pipeline.tokenizers.tokenization import Tokenizer

logger = logging.getLogger(__name__)

#: Size of a sample: so many ranges, and so many characters of all of them together.
_NUM_RANGES, _SAMPLE_CHARS = 16, 400_000
#: Fewer letters than this say nothing about the language.
_FEWEST_LETTERS = 500
#: Fraction of the letters in the scripts of the language: below the first a build is refused, below
#: the second there is a warning.
_NO_SCRIPT, _LITTLE_SCRIPT = 0.01, 0.5
_MOST_PADDING = 0.5
#: Positions of the released models.
_RELEASED_LENGTH = 512
#: Letters that are frequent in a language, 0.5 % of all or more, and do not occur in English.
_OWN_LETTERS = {
    "cs": "áčéěířšůýž",
    "da": "æøå",
    "de": "äöüß",
    "es": "áéíóúñ",
    "et": "äõöü",
    "fi": "äö",
    "fr": "éèêàç",
    "hu": "áéíóöőűü",
    "lt": "ąčėęįšųūž",
    "lv": "āčēģīķļņšūž",
    "no": "æøå",
    "pl": "ąćęłńóśźż",
    "pt": "áâãçéêíóõ",
    "ro": "ăâîșşțţ",
    "sk": "áčéíľšťúýž",
    "sv": "åäö",
    "tr": "çğışöü",
    "vi": "ăâđêôơư",
}
#: Fraction of these letters below which a text is hardly in the language, and of letters other
#: than a-z above which it is hardly English.
_FEWEST_OWN, _MOST_FOREIGN = 0.0005, 0.005


def check_before_build(
    sources: str | Path | list,
    tokenizer: Tokenizer,
    config: PretrainingDataConfig,
    corpus_format: str = "auto",
) -> None:
    """Checks settings against a sample of about 0.4 MB of a corpus, and logs warnings.

    There are warnings if most positions of the records would be padding, if the records are longer
    than the released models take, and if the letters of the text do not belong to the language.

    Args:
        sources: str, Path or list of them, as in `read_corpus`.
        tokenizer: Tokenizer.
        config: PretrainingDataConfig.
        corpus_format: str. As in `read_corpus`.

    Raises:
        InputError: If the splitter depends on a language that is not written in the script of the
            corpus, or as `read_corpus`.
    """
    check_splitter(config.splitter, config.language)
    if config.max_seq_length > _RELEASED_LENGTH:
        logger.warning(
            "The released models and the named sizes take at most %d tokens. To train on records "
            "of %d tokens, pass `--set model.max_position_embeddings=%d` to pretrain.",
            _RELEASED_LENGTH,
            config.max_seq_length,
            config.max_seq_length,
        )
    documents = _sample(corpus_ranges(sources, corpus_format))
    # Given sentences are not split, so their language does not matter.
    split = [document.text for document in documents if not document.sentences_given]
    if config.splitter == "sentencex" and split:
        _check_language("\n".join(split), config.language)
    preview = RecordPreview(tokenizer, config)
    for document in documents:
        sentences = split_sentences(document, config.splitter, config.language)
        ids, lengths = tokenizer.encode_sentences(sentences)
        preview.add(ids, lengths[lengths > 0])
    estimate = preview.estimate(share=1, seconds=0)
    if estimate.padding > _MOST_PADDING:
        length = max(8, 1 << (2 * estimate.median_tokens - 1).bit_length())
        logger.warning(
            "About %.0f %% of all positions will be padding: half of the records have at most %d "
            "tokens, and `max_seq_length` is %d. Records with `--max-seq-length %d` take less "
            "space and train faster.",
            100 * estimate.padding,
            estimate.median_tokens,
            config.max_seq_length,
            min(length, config.max_seq_length // 2),
        )


def _sample(ranges):
    """Returns some documents of ranges that are spread over the corpus."""
    chosen = np.unique(np.linspace(0, len(ranges) - 1, _NUM_RANGES).astype(int)) if ranges else []
    documents = []
    for number in chosen:
        size = 0
        for document in read_range(ranges[number]):
            documents.append(document)
            size += len(document.text)
            if size >= _SAMPLE_CHARS / len(chosen):
                break
    return documents


def _check_language(text, language):
    characters = Characters()
    characters.add(text)
    letters = {one: count for one, count in characters.most_common() if one.isalpha()}
    total = sum(letters.values())
    if total < _FEWEST_LETTERS:
        return
    scripts = characters.scripts()
    expected = expected_scripts(language)
    share = sum(scripts.get(script, 0) for script in expected)
    found = ", ".join(f"{name} {part:.0%}" for name, part in itertools.islice(scripts.items(), 3))
    written = " and ".join(expected)
    if share < _NO_SCRIPT:
        fitting = languages_of_script(next(iter(scripts)))
        raise InputError(
            "`language` must be the language of the corpus, because sentences are split by its "
            f"rules. `{language}` is written in {written}, but the letters of a sample are "
            f"{found}. Received: language={language!r}. Choose {fitting}, or `--splitter line` if "
            "each paragraph is one sentence."
        )
    if share < _LITTLE_SCRIPT:
        logger.warning(
            "The corpus does not seem to be in the language `%s`, which is written in %s: the "
            "letters of a sample are %s. Sentences are split by the rules of `--language`.",
            language,
            written,
            found,
        )
        return
    own = _OWN_LETTERS.get(language, "")
    if own and sum(letters.get(one, 0) for one in own) / total < _FEWEST_OWN:
        logger.warning(
            "The corpus does not seem to be in the language `%s`: a sample has almost no `%s`. "
            "Sentences are split by the rules of `--language`.",
            language,
            own,
        )
    foreign = {one: count for one, count in letters.items() if not one.isascii()}
    if language == "en" and sum(foreign.values()) / total > _MOST_FOREIGN:
        logger.warning(
            "The corpus does not seem to be in the language `en`: a sample contains many letters "
            "other than a-z, such as `%s`. Sentences are split by the rules of `--language`.",
            "".join(itertools.islice(foreign, 8)),
        )
