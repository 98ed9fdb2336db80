"""The library tokenizers of Hugging Face, which is optional, and its training."""

import logging
import threading
from collections import Counter
from typing import Any

from data_pipeline.errors import InputError, Mistake

logger = logging.getLogger(__name__)

#: Rarer pieces are not learned.
LEAST_COUNT = 2
_SECONDS_TO_WAIT = 0.25


def load_tokenizers() -> Any:
    """Returns the library; raises InputError if it is not installed."""
    try:
        import tokenizers
        import tokenizers.models
        import tokenizers.pre_tokenizers
        import tokenizers.trainers
    except ImportError as error:
        raise InputError(
            "WordPiece vocabularies are trained, and byte-level BPE is read, with the library "
            "`tokenizers`, which is not installed. Install it with "
            "`pip install 'albert-keras[tokenizers]'`.",
            Mistake.EXTRA_MISSING,
        ) from error
    return tokenizers


def train_on_words(model: Any, trainer: Any, words: Counter) -> Any:
    """Trains a model of the library on counted words without white space; returns its Tokenizer.

    The result does not depend on the order of the words. Ctrl-C interrupts the training: it runs in
    a thread of its own, which ends with the process.
    """
    library = load_tokenizers()
    tokenizer = library.Tokenizer(model)
    tokenizer.pre_tokenizer = library.pre_tokenizers.WhitespaceSplit()
    characters = sum(len(word) * count for word, count in words.items())
    logger.info(
        "training on %s different words in %.1f million characters",
        f"{len(words):,}",
        characters / 1e6,
    )
    texts = (" ".join([word] * count) for word, count in sorted(words.items()))
    errors: list[BaseException] = []

    def train():
        try:
            tokenizer.train_from_iterator(texts, trainer)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=train, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_SECONDS_TO_WAIT)
    if errors:
        raise errors[0]
    return tokenizer
