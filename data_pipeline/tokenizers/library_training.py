"""Trains WordPiece and byte-level BPE vocabularies with the library tokenizers of Hugging Face.

The words of WordPiece are those that the tokenizer sees, after its clean-up.
"""

import collections
import json
import logging
import string
from collections.abc import Iterable
from pathlib import Path

from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import check_output_folder, whole_folder
from data_pipeline.text.letters import choose_cleanup
from data_pipeline.tokenizers.byte_bpe import (
    BYTE_CHARACTERS,
    SPECIAL_PIECES as BPE_SPECIAL_PIECES,
    ByteBPEModel,
    BytePieces,
    load_tokenizers,
    write_bpe,
)
from data_pipeline.tokenizers.sentencepiece_model import replace_surrogates
from data_pipeline.tokenizers.vocabulary import COVERAGE, Coverage, TrainedVocabulary
from data_pipeline.tokenizers.vocabulary_files import write_tokenizer_files
from data_pipeline.tokenizers.wordpiece import (
    CONTINUATION,
    MAX_WORD_CHARACTERS,
    SPECIAL_PIECES,
    UNKNOWN,
    BasicTokenizer,
    WordPieceModel,
    is_ideograph,
    is_punctuation,
)

logger = logging.getLogger(__name__)

#: Rarer pieces are not learned.
_LEAST_COUNT = 2


def train_wordpiece(
    corpus_texts: Iterable[str],
    out: str | Path,
    size: int = 30_000,
    *,
    lower_case: bool | None = None,
    strip_accents: bool | None = None,
    language: str | None = None,
) -> TrainedVocabulary:
    """Trains a WordPiece vocabulary and writes its folder, completely or not at all.

    The same texts give the same bytes, in any order. [PAD] has the id 0, as in BERT's
    vocabularies, but [UNK], [CLS], [SEP] and [MASK] follow immediately.

    Args:
        corpus_texts, out: As in `train_vocabulary`.
        size: int. Largest number of pieces, V. A small corpus has fewer.
        lower_case, strip_accents: bool or None. As in `BasicTokenizer`; None as in
            `train_vocabulary`.
        language: As in `train_vocabulary`.

    Raises:
        InputError: If the corpus is empty, `out` cannot be written or is not empty, `size` is too
            small for the characters, or the library is not installed.

    Source:
        `WordPieceTrainer` in huggingface/tokenizers, which joins the most frequent pairs of pieces;
        Google has not published the trainer of BERT's vocabularies.
    """
    check_output_folder(out)
    load_tokenizers()
    with whole_folder(out) as folder:
        texts, lower_case, strip_accents = choose_cleanup(
            corpus_texts, lower_case, strip_accents, language
        )
        basic = BasicTokenizer(lower_case, strip_accents)
        words = _count_words(texts, basic)
        if not words:
            raise InputError("The corpus contains no words. Check its path.", Mistake.EMPTY_CORPUS)
        counts: collections.Counter[str] = collections.Counter()
        for word, count in words.items():
            for character in word:
                counts[character] += count
        required = "".join(basic.words(" ".join(string.printable)))
        allowed = _allowed_characters(counts) | set(required)
        pieces = _learn(words, allowed, size)
        content = "".join(f"{piece}\n" for piece in pieces).encode()
        settings = {"lower_case": lower_case, "strip_accents": strip_accents}
        config = WordPieceModel.config_of_file(content, out, settings)
        write_tokenizer_files(folder, content, config)
    return TrainedVocabulary(
        Path(out), config.vocab_size, config.sha256, Coverage.of(counts, allowed)
    )


def _count_words(texts, basic):
    chunks = collections.Counter(chunk for text in texts for chunk in basic.chunks(text))
    words = collections.Counter()
    for chunk, count in chunks.items():
        for word in basic.words_of_chunk(chunk):
            words[word] += count
    return words


def _allowed_characters(counts):
    """Returns the most frequent characters that make up `COVERAGE` of the text: set of str."""
    missing, allowed = counts.total() * COVERAGE, set()
    for character, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if missing <= 0:
            break
        allowed.add(character)
        missing -= count
    return allowed


def _learn(words, allowed, size):
    """Returns the pieces, at most `size`: special ones, characters, then the most frequent ones."""
    tokenizers = load_tokenizers()
    characters = sorted(allowed)
    # Ideographs and punctuation are words of their own wherever they are.
    parts = (one for one in characters if not (is_ideograph(one) or is_punctuation(one)))
    inside = [f"{CONTINUATION}{character}" for character in parts]
    reserved = [*SPECIAL_PIECES, *characters, *inside]
    if size < len(reserved):
        raise InputError(
            f"`size` must be at least {len(reserved)} for this corpus: {len(SPECIAL_PIECES)} "
            f"special pieces, {len(characters)} characters at the start of words and {len(inside)} "
            f"inside of words. Received: {size}. Raise it.",
            Mistake.VOCABULARY_SIZE,
        )
    kept = {
        word: count
        for word, count in words.items()
        if len(word) <= MAX_WORD_CHARACTERS and allowed.issuperset(word)
    }
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=_LEAST_COUNT,
        special_tokens=reserved,
        continuing_subword_prefix=CONTINUATION,
        show_progress=False,
    )
    model = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token=UNKNOWN))
    model.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    logger.info("training on %s different words", f"{len(kept):,}")
    model.train_from_iterator((" ".join([word] * kept[word]) for word in sorted(kept)), trainer)
    return _by_id(model.get_vocab())


def train_byte_bpe(
    corpus_texts: Iterable[str], out: str | Path, size: int = 50_000
) -> TrainedVocabulary:
    """Trains a byte-level BPE vocabulary and writes its folder, completely or not at all.

    The same texts give the same bytes, in any order. Text is neither lower-cased nor stripped of
    accents, and no character is unknown. A text starts with a space (`add_prefix_space`), which
    deviates from RoBERTa, so that the first word of a sentence has its usual pieces.

    Args:
        corpus_texts, out: As in `train_vocabulary`.
        size: int. Largest number of pieces, V; 256 of them are bytes, and 5 special tokens. A small
            corpus has fewer.

    Raises:
        InputError: If the corpus is empty, `out` cannot be written or is not empty, `size` is too
            small, or the library is not installed.

    Source:
        RoBERTa, section 4.4 (https://arxiv.org/abs/1907.11692); `BpeTrainer` in
        huggingface/tokenizers.
    """
    check_output_folder(out)
    least = len(BYTE_CHARACTERS) + len(BPE_SPECIAL_PIECES)
    if size < least:
        raise InputError(
            f"`size` must be at least {least}: {len(BYTE_CHARACTERS)} bytes and "
            f"{len(BPE_SPECIAL_PIECES)} special tokens. Received: {size}. Raise it.",
            Mistake.VOCABULARY_SIZE,
        )
    with whole_folder(out) as folder:
        pieces, merges, characters = _learn_merges(corpus_texts, size - len(BPE_SPECIAL_PIECES))
        # The ids of RoBERTa: <s> 0, <pad> 1, </s> 2, <unk> 3, and <mask> the last one.
        pieces = ["<s>", "<pad>", "</s>", "<unk>", *pieces, "<mask>"]
        content = write_bpe(BytePieces(pieces, merges, add_prefix_space=True, pair_separators=2))
        config = ByteBPEModel.config_of_file(content, out, {})
        write_tokenizer_files(folder, content, config)
    return TrainedVocabulary(Path(out), config.vocab_size, config.sha256, Coverage(characters, {}))


def _learn_merges(texts, size):
    """Returns pieces, merges, and the number of characters of the texts but spaces."""
    library = load_tokenizers()
    characters = 0

    def counted_texts():
        nonlocal characters
        for text in texts:
            characters += len(text) - text.count(" ")
            yield replace_surrogates(text)
        logger.info("training on %.1f million characters", characters / 1e6)

    trainer = library.trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=_LEAST_COUNT,
        special_tokens=[],
        initial_alphabet=list(BYTE_CHARACTERS),
        show_progress=False,
    )
    model = library.Tokenizer(library.models.BPE())
    model.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=True)
    model.train_from_iterator(counted_texts(), trainer)
    if not characters:
        raise InputError("The corpus contains no words. Check its path.", Mistake.EMPTY_CORPUS)
    merges = {}  # of several that make the same piece, the first learned one
    for merge in json.loads(model.to_str())["model"]["merges"]:
        parts = merge.split(" ") if isinstance(merge, str) else merge
        merges.setdefault("".join(parts), tuple(parts))
    return _by_id(model.get_vocab()), list(merges.values()), characters


def _by_id(ids):
    return sorted(ids, key=ids.__getitem__)
