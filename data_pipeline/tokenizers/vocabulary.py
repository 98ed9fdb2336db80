"""Trains a SentencePiece vocabulary on a corpus, and writes its folder.

The folder contains the model, its pieces as text, and a configuration, which describes the clean-up
of text and contains the model's hash. `tokenization` loads it.
"""

import collections
import hashlib
import io
import logging
import re
import string
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sentencepiece

from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import check_output_folder, temporary_folder, whole_folder
from data_pipeline.progress import format_duration
from data_pipeline.text.letters import choose_cleanup
from data_pipeline.tokenizers.normalization_rules import normalizer_of
from data_pipeline.tokenizers.vocabulary_files import (
    CONTROL_SYMBOLS,
    SPACE,
    TokenizerConfig,
    read_model,
    write_model,
    write_tokenizer_files,
)

logger = logging.getLogger(__name__)

#: In the order of their ids, from 5 to 12, after `CONTROL_SYMBOLS`.
USER_DEFINED_SYMBOLS = ("(", ")", '"', "-", ".", "–", "£", "€")

#: Fraction of the characters of a corpus that get a piece; the others are unknown.
COVERAGE = 0.99995

#: Characters that get a piece in every vocabulary, in the form that the clean-up gives them.
ALWAYS_REQUIRED = string.digits + string.ascii_letters + string.punctuation

#: SentencePiece silently drops longer sentences, hence `_split_to_size`.
_MAX_SENTENCE_BYTES = 4192
#: More are sampled.
_MAX_SENTENCES = 10_000_000

#: Each thread adds up the scores of its sentences, so the number of threads affects their last
#: digits. It is fixed, so that every machine trains the same vocabulary.
_NUM_THREADS = 8

#: SentencePiece drops a sentence with U+2585, its own sign for unknown; NUL is not text.
_NOT_FOR_TRAINING = re.compile("[\u2585\0\ud800-\udfff]")
_SPACE = re.compile(r"\s")
_LINE_END = re.compile("[\r\n]")
_UNCOUNTED = frozenset(USER_DEFINED_SYMBOLS) | {" ", SPACE}


@dataclass(frozen=True)
class Coverage:
    """Which characters of the corpus have a piece, after the clean-up; spaces do not count."""

    characters: int  # of the whole corpus
    uncovered: dict[str, int]  # unknown character -> its count, the most frequent first

    @classmethod
    def of(cls, counts: collections.Counter[str], covered: set[str]) -> "Coverage":
        """Returns the coverage of counted characters by those that have a piece."""
        uncovered = {one: count for one, count in counts.most_common() if one not in covered}
        return cls(counts.total(), uncovered)

    @property
    def fraction(self) -> float:
        """Fraction of the characters that have a piece, from 0 to 1."""
        return 1 - sum(self.uncovered.values()) / self.characters


@dataclass(frozen=True)
class TrainedVocabulary:
    """A vocabulary on disk."""

    path: Path  # of its folder
    size: int  # number of pieces, V
    sha256: str  # of the model file, in hexadecimal
    coverage: Coverage | None = None  # None for an extended vocabulary


def train_vocabulary(
    corpus_texts: Iterable[str],
    out: str | Path,
    size: int = 30_000,
    *,
    lower_case: bool | None = None,
    strip_accents: bool | None = None,
    language: str | None = None,
    hard_limit: bool = True,
) -> TrainedVocabulary:
    """Trains a unigram vocabulary and writes its folder, completely or not at all.

    Printable ASCII gets pieces, and the most frequent characters that make up `COVERAGE` of the
    corpus. The same texts in the same order give the same bytes. There is no seed: the one random
    choice, which 10 million sentences to use of more, has a fixed seed inside SentencePiece.

    Args:
        corpus_texts: iterable of str. Sentences or paragraphs, read once, into a temporary file.
            Those longer than 4192 bytes are split at white space; none is skipped.
        out: path. The folder to write; it must not exist yet, or be empty.
        size: int. Number of pieces, V, the 13 special ones included.
        lower_case, strip_accents: bool or None. As in `clean_up`. None means what suits the
            language, see `choose_cleanup`.
        language: str or None. Code of the language of the corpus; None is English.
        hard_limit: bool. Whether a corpus too small for `size` is an error; otherwise the
            vocabulary becomes as large as the corpus allows.

    Raises:
        InputError: If the corpus is empty, or its language must be given, see `check_is_english`;
            `out` cannot be written or is not empty; or `size` does not suit the corpus.

    Source:
        The `spm_train` command in the README of google-research/albert.
    """
    check_output_folder(out)
    if size < 1:
        raise InputError(f"`size` must be a positive number of pieces. Received: {size}.")
    with whole_folder(out) as folder:
        texts, lower_case, strip_accents = choose_cleanup(
            corpus_texts, lower_case, strip_accents, language
        )
        model, counts = train_unigram(
            texts,
            lower_case,
            strip_accents,
            vocab_size=size,
            character_coverage=COVERAGE,
            hard_vocab_limit=hard_limit,
        )
        pieces = {piece.piece for piece in read_model(model).pieces}
        config = TokenizerConfig(
            cleanup="model",
            lower_case=lower_case,
            strip_accents=strip_accents,
            vocab_size=len(pieces),
            sha256=hashlib.sha256(model).hexdigest(),
        )
        write_tokenizer_files(folder, model, config)
    return TrainedVocabulary(
        Path(out), config.vocab_size, config.sha256, Coverage.of(counts, pieces)
    )


def _sentences(texts, normalize, counts):
    """Yields sentences for SentencePiece; adds their characters after the clean-up to `counts`."""
    for text in texts:
        for sentence in _split_to_size(_NOT_FOR_TRAINING.sub(" ", text)):
            counts.update(normalize(sentence))
            yield sentence


def _split_to_size(text):
    """Splits a text at white space, or inside an endless word, into what SentencePiece accepts."""
    longest = _MAX_SENTENCE_BYTES // 4  # in characters of at most four bytes
    start = 0
    while len(text) - start > longest:
        if len(text[start : start + _MAX_SENTENCE_BYTES + 1].encode()) <= _MAX_SENTENCE_BYTES:
            break  # the rest fits
        spaces = [match.start() for match in _SPACE.finditer(text, start + 1, start + longest)]
        end = spaces[-1] if spaces else start + longest
        yield text[start:end]
        start = end
    yield text[start:]


def train_unigram(
    texts: Iterable[str],
    lower_case: bool,
    strip_accents: bool,
    **options: Any,
) -> tuple[bytes, collections.Counter[str]]:
    """Returns a trained model file, and the counts of the characters of the texts, cleaned up.

    `options` are those of SentencePiece; the others are as in `train_vocabulary`.
    """
    counts: collections.Counter[str] = collections.Counter()
    sentencepiece.SetMinLogLevel(2)
    normalizer, rules = normalizer_of(lower_case, strip_accents)
    normalize = normalizer.normalize
    required = set(normalize(ALWAYS_REQUIRED)) - _UNCOUNTED
    with temporary_folder() as folder:
        rule_file, text_file = Path(folder, "rules.tsv"), Path(folder, "sentences.txt")
        rule_file.write_text(rules, encoding="utf-8")
        # All text is read before SentencePiece starts, which cannot be interrupted.
        with open(text_file, "w", encoding="utf-8", newline="") as file:
            for sentence in _sentences(texts, normalize, counts):
                file.write(_LINE_END.sub(" ", sentence) + "\n")
        # SentencePiece up to 0.2.1 aborts the process if there is nothing to count.
        if counts.keys() <= _UNCOUNTED:
            raise InputError("The corpus contains no words. Check its path.", Mistake.EMPTY_CORPUS)
        options |= {
            "input": str(text_file),
            "model_type": "unigram",
            "normalization_rule_tsv": str(rule_file),
            "required_chars": "".join(sorted(required)),
            "max_sentence_length": _MAX_SENTENCE_BYTES,
            "input_sentence_size": _MAX_SENTENCES,
            "shuffle_input_sentence": True,
            "pad_id": 0,
            "unk_id": 1,
            "bos_id": -1,
            "eos_id": -1,
            "control_symbols": list(CONTROL_SYMBOLS),
            "user_defined_symbols": list(USER_DEFINED_SYMBOLS),
            "num_threads": _NUM_THREADS,
            "minloglevel": 2,
        }
        characters, model = counts.total(), io.BytesIO()
        seconds = format_duration(2 + characters / 500_000)
        logger.info("training on %.1f million characters, about %s", characters / 1e6, seconds)
        try:
            sentencepiece.SentencePieceTrainer.train(model_writer=model, **options)
        except RuntimeError as error:
            raise _explain(str(error), options["vocab_size"]) from error
    trained = read_model(model.getvalue())
    trained.trainer_spec.ClearField("input")  # both are local paths
    trained.normalizer_spec.ClearField("normalization_rule_tsv")
    del counts[" "]
    return write_model(trained), counts


def _explain(message, size):
    """Returns the error that explains a message of SentencePiece about a corpus."""
    if found := re.search(r"too high.*value <= (\d+)", message):
        limit, advice = f"at most {found[1]}", "Lower it or give more text"
    elif found := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        limit, advice = f"at least {found[1]}, the special pieces and printable ASCII,", "Raise it"
    else:
        return InputError(f"SentencePiece cannot train on this corpus: {message}")
    return InputError(
        f"`size` must be {limit} for this corpus. Received: {size}. {advice}.",
        Mistake.VOCABULARY_SIZE,
    )
