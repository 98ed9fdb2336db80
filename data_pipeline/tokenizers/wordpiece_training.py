"""Trains a WordPiece vocabulary on a corpus, with the library tokenizers of Hugging Face.

The words are those that the tokenizer sees, after its clean-up.
"""

import collections
import hashlib
import string
from collections.abc import Iterable
from pathlib import Path

from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import check_output_folder, whole_folder
from data_pipeline.text.letters import choose_cleanup
from data_pipeline.tokenizers.basic_words import IDEOGRAPHS, BasicTokenizer, is_punctuation
from data_pipeline.tokenizers.huggingface_library import (
    LEAST_COUNT,
    load_tokenizers,
    train_on_words,
)
from data_pipeline.tokenizers.vocabulary import Coverage, TrainedVocabulary
from data_pipeline.tokenizers.wordpiece import (
    CONTINUATION,
    MAX_WORD_CHARACTERS,
    SPECIAL_PIECES,
    UNKNOWN,
    WordPieceConfig,
    WordPieceModel,
)


def train_wordpiece(
    corpus_texts: Iterable[str],
    out: str | Path,
    size: int = 30_000,
    *,
    lower_case: bool | None = None,
    strip_accents: bool | None = None,
    character_coverage: float = 0.99995,
    required_characters: str = "",
) -> TrainedVocabulary:
    """Trains a WordPiece vocabulary and writes its folder, completely or not at all.

    The same texts give the same bytes, in any order. [PAD] has the id 0, as in BERT's
    vocabularies, but [UNK], [CLS], [SEP] and [MASK] follow immediately.

    Args:
        corpus_texts: iterable of str. Sentences or paragraphs, read once.
        out: path. The folder to write; it must not exist yet, or be empty.
        size: int. Largest number of pieces, V. A small corpus has fewer.
        lower_case, strip_accents: bool or None. As in `BasicTokenizer`. None means true, unless
            letters of the language would be lost, see `choose_cleanup`.
        character_coverage: float. Fraction of the corpus's characters that get pieces; words with
            others are unknown. Printable ASCII always gets pieces.
        required_characters: str. Further characters that always get pieces, after the clean-up.

    Raises:
        InputError: If the corpus is empty, `out` cannot be written or is not empty, `size` is too
            small for the characters, or the library is not installed.

    Source:
        `WordPieceTrainer` in huggingface/tokenizers, which joins the most frequent pairs of pieces;
        Google has not published the trainer of BERT's vocabularies.
    """
    out = Path(out)
    check_output_folder(out)
    load_tokenizers()
    texts, lower_case, strip_accents = choose_cleanup(corpus_texts, lower_case, strip_accents)
    basic = BasicTokenizer(lower_case, strip_accents)
    words = _count_words(texts, basic)
    if not words:
        raise InputError("The corpus contains no words. Check its path.", Mistake.EMPTY_CORPUS)
    counts: collections.Counter[str] = collections.Counter()
    for word, count in words.items():
        for character in word:
            counts[character] += count
    required = "".join(basic.words(" ".join(string.printable + required_characters)))
    allowed = _allowed_characters(counts, character_coverage) | set(required)
    pieces = _learn(words, allowed, size)
    content = "".join(f"{piece}\n" for piece in pieces).encode()
    config = WordPieceConfig(
        lower_case=lower_case,
        strip_accents=strip_accents,
        vocab_size=len(pieces),
        sha256=hashlib.sha256(content).hexdigest(),
    )
    with whole_folder(out) as folder:
        WordPieceModel(content, config).write_files(folder)
    uncovered = {
        character: count for character, count in counts.most_common() if character not in allowed
    }
    coverage = Coverage(counts.total(), uncovered)
    return TrainedVocabulary(out, len(pieces), config.sha256, coverage)


def _count_words(texts, basic):
    """Counts the words of texts: Counter of str."""
    chunks: collections.Counter[str] = collections.Counter()
    for text in texts:
        chunks.update(basic.chunks(text))
    words: collections.Counter[str] = collections.Counter()
    for chunk, count in chunks.items():
        for word in basic.words_of_chunk(chunk):
            words[word] += count
    return words


def _is_word(character):
    """Returns whether a character is a word of its own wherever it occurs."""
    is_ideograph = any(first <= ord(character) <= last for first, last in IDEOGRAPHS)
    return is_ideograph or is_punctuation(character)


def _allowed_characters(counts, coverage):
    """Returns the most frequent characters that make up a fraction of the text: set of str."""
    missing, allowed = counts.total() * coverage, set()
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
    inside = [CONTINUATION + character for character in characters if not _is_word(character)]
    reserved = [*SPECIAL_PIECES, *characters, *inside]
    if size < len(reserved):
        raise InputError(
            f"`size` must be at least {len(reserved)} for this corpus: {len(SPECIAL_PIECES)} "
            f"special pieces, {len(characters)} characters at the start of words and {len(inside)} "
            f"inside of words. Received: {size}. Raise it.",
            Mistake.VOCABULARY_SIZE,
        )
    kept = collections.Counter(
        {
            word: count
            for word, count in words.items()
            if len(word) <= MAX_WORD_CHARACTERS and allowed.issuperset(word)
        }
    )
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=size,
        min_frequency=LEAST_COUNT,
        special_tokens=reserved,
        continuing_subword_prefix=CONTINUATION,
        show_progress=False,
    )
    model = train_on_words(tokenizers.models.WordPiece(unk_token=UNKNOWN), trainer, kept)
    ids = model.get_vocab()
    return sorted(ids, key=ids.__getitem__)
