"""Extends a vocabulary with new pieces, for text that its own pieces split too finely.

The new pieces are those of a vocabulary that is trained on the text. A unigram model chooses the
split of a text with the highest sum of scores, so any run of its chosen pieces is the best split of
that run. The score of a new piece is the sum of the scores of the pieces that it replaces, plus a
little for each piece saved. So it wins wherever the old model would have chosen that run, and the
longer of two new pieces wins. Text without such a run is split as before, except where two splits
were almost equally good.
"""

import hashlib
import math
import unicodedata
from collections.abc import Iterable
from pathlib import Path

from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_folder
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import TrainedVocabulary, train_unigram
from data_pipeline.tokenizers.vocabulary_files import (
    SPACE,
    Piece,
    is_unigram,
    read_model,
    write_model,
    write_tokenizer_files,
)

#: Score that a new piece has for each piece that it saves, above the rounding of long sums.
_MARGIN = 0.01
#: SentencePiece's penalty for unknown characters.
_UNKNOWN_PENALTY = 10.0


def extend_vocabulary(
    tokenizer: Tokenizer, corpus_texts: Iterable[str], out: str | Path, add: int
) -> TrainedVocabulary:
    """Writes a tokenizer with additional pieces: those that save the most pieces on a corpus.

    All old pieces keep their ids; the new ones follow. They are words or parts of words, of letters
    only, and single characters that were unknown. The same texts give the same bytes.

    Raises InputError if the tokenizer is not a unigram model, if a vocabulary trained on the corpus
    has fewer than `add` pieces that the tokenizer lacks, or if the folder `out` is not empty.

    Source: AVocaDo (Hong et al. 2021, https://arxiv.org/abs/2110.13434).
    """
    check_output_folder(out)
    if add < 1:
        raise InputError(f"`add` must be at least 1. Received: {add}.")
    if tokenizer.config.kind != "unigram" or not is_unigram(tokenizer.model_bytes):
        raise InputError(
            "Only a unigram model of SentencePiece without byte pieces can be extended. "
            "The tokenizer is of another kind."
        )
    with whole_folder(out) as folder:
        model = read_model(tokenizer.model_bytes)
        scores = [each.score for each in model.pieces if each.type == Piece.NORMAL]
        unknown = min(scores) - _UNKNOWN_PENALTY
        useful = _useful_pieces(tokenizer, corpus_texts, add)
        if len(useful) < add:
            raise InputError(
                f"`add` must be at most {len(useful)} for this corpus. Received: {add}."
            )
        for piece in useful[:add]:
            parts = _split(tokenizer, piece)
            score = sum(
                unknown if id == tokenizer.unk_id else model.pieces[id].score for id in parts
            ) + _MARGIN * (len(parts) - 1)
            model.pieces.add(piece=piece, score=score, type=Piece.NORMAL)
        content = write_model(model)
        digest = hashlib.sha256(content).hexdigest()
        size = len(model.pieces)
        config = tokenizer.config.replace(vocab_size=size, sha256=digest, extends=tokenizer.digest)
        write_tokenizer_files(folder, content, config)
    return TrainedVocabulary(Path(out), config.vocab_size, config.sha256)


def is_extension(old: Tokenizer, new: Tokenizer) -> bool:
    """Returns whether `extend_vocabulary` made a tokenizer from another one."""
    return getattr(new.config, "extends", None) == old.digest


def segments_of_added(old: Tokenizer, new: Tokenizer) -> list[list[int]]:
    """Splits each added piece of an extended vocabulary, in the order of ids, into old ids.

    Raises InputError if `new` is not an extension of `old`.
    """
    if not is_extension(old, new):
        raise InputError(
            "The new vocabulary must be made from the old one by `vocab extend`. Received: digests "
            f"{old.digest} (old) and {new.digest} (new)."
        )
    return [_split(old, new.piece_of(id)) for id in range(old.vocab_size, new.vocab_size)]


def _split(tokenizer, piece):
    """Returns the ids into which a tokenizer splits a piece that it does not have."""
    text = piece.removeprefix(SPACE)
    starts_word = piece.startswith(SPACE)
    ids = tokenizer.encode(text) if starts_word else tokenizer.continuation_ids(text)
    return ids or [tokenizer.unk_id]


def _useful_pieces(tokenizer, texts, add):
    """Returns pieces that a tokenizer lacks, those that save the most pieces of texts first."""
    config, known = tokenizer.config, set(tokenizer.model.vocabulary)
    trained, _ = train_unigram(
        texts,
        config.lower_case,
        config.strip_accents,
        vocab_size=tokenizer.vocab_size + add,
        hard_vocab_limit=False,
    )
    saved = {}
    for piece in read_model(trained).pieces:
        if piece.type == Piece.NORMAL and piece.piece not in known and _is_new(piece.piece):
            parts = len(_split(tokenizer, piece.piece))
            # The score is the logarithm of the frequency. A character is no longer unknown.
            saved[piece.piece] = math.exp(piece.score) * max(parts - 1, 1)
    return sorted(saved, key=lambda piece: (-saved[piece], piece))


def _is_new(piece):
    """Returns whether a piece may be added: letters, or one sign that text contains."""
    categories = [unicodedata.category(character)[0] for character in piece.removeprefix(SPACE)]
    is_sign = len(piece) == 1 and categories and categories[0] not in "CZ"
    return bool(categories) and set(categories) <= {"L", "M"} or is_sign
