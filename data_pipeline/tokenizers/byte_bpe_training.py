"""Trains a byte-level BPE vocabulary on a corpus, with the library tokenizers of Hugging Face."""

import collections
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path

from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import check_output_folder, whole_folder
from data_pipeline.tokenizers.byte_bpe import (
    BYTE_CHARACTERS,
    SPECIAL_PIECES,
    ByteBPEConfig,
    ByteBPEModel,
    BytePieces,
    write_bpe,
)
from data_pipeline.tokenizers.huggingface_library import (
    LEAST_COUNT,
    load_tokenizers,
    train_on_words,
)
from data_pipeline.tokenizers.sentencepiece_model import replace_surrogates
from data_pipeline.tokenizers.vocabulary import Coverage, TrainedVocabulary


def train_byte_bpe(
    corpus_texts: Iterable[str], out: str | Path, size: int = 50_000
) -> TrainedVocabulary:
    """Trains a byte-level BPE vocabulary and writes its folder, completely or not at all.

    The same texts give the same bytes, in any order. Text is neither lower-cased nor stripped of
    accents, and no character is unknown. A text starts with a space (`add_prefix_space`), which
    deviates from RoBERTa, so that the first word of a sentence has its usual pieces.

    Args:
        corpus_texts: iterable of str. Sentences or paragraphs, read once.
        out: path. The folder to write; it must not exist yet, or be empty.
        size: int. Largest number of pieces, V; 256 of them are bytes, and 5 special tokens. A small
            corpus has fewer.

    Raises:
        InputError: If the corpus is empty, `out` cannot be written or is not empty, `size` is too
            small, or the library is not installed.

    Source:
        RoBERTa, section 4.4 (https://arxiv.org/abs/1907.11692); `BpeTrainer` in
        huggingface/tokenizers.
    """
    out = Path(out)
    check_output_folder(out)
    least = len(BYTE_CHARACTERS) + len(SPECIAL_PIECES)
    if size < least:
        raise InputError(
            f"`size` must be at least {least}: {len(BYTE_CHARACTERS)} bytes and "
            f"{len(SPECIAL_PIECES)} special tokens. Received: {size}. Raise it.",
            Mistake.VOCABULARY_SIZE,
        )
    pieces, merges, characters = _learn(corpus_texts, size - len(SPECIAL_PIECES))
    # The ids of RoBERTa: <s> 0, <pad> 1, </s> 2, <unk> 3, and <mask> the last one.
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *pieces, "<mask>"]
    learned = BytePieces(pieces, merges, add_prefix_space=True, pair_separators=2)
    content = write_bpe(learned)
    config = ByteBPEConfig(
        add_prefix_space=learned.add_prefix_space,
        pair_separators=learned.pair_separators,
        vocab_size=len(pieces),
        sha256=hashlib.sha256(content).hexdigest(),
    )
    with whole_folder(out) as folder:
        ByteBPEModel(content, config).write_files(folder)
    return TrainedVocabulary(out, len(pieces), config.sha256, Coverage(characters, {}))


def _learn(texts, size):
    """Returns pieces, merges, and the number of characters of the texts but spaces."""
    library = load_tokenizers()
    splitter = library.pre_tokenizers.ByteLevel(add_prefix_space=True)
    words: collections.Counter[str] = collections.Counter()
    characters = 0
    for text in texts:
        characters += len(text) - text.count(" ")
        pairs = splitter.pre_tokenize_str(replace_surrogates(text))
        words.update(word for word, _ in pairs)
    if not words:
        raise InputError("The corpus contains no words. Check its path.", Mistake.EMPTY_CORPUS)
    trainer = library.trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=LEAST_COUNT,
        special_tokens=[],
        initial_alphabet=list(BYTE_CHARACTERS),
        show_progress=False,
    )
    model = train_on_words(library.models.BPE(), trainer, words)  # bytes are visible characters
    ids = model.get_vocab()
    trained = _merges_of(model)
    merges = _without_special(trained)
    kept = {first + second for first, second in merges}
    dropped = {first + second for first, second in trained} - kept
    pieces = [piece for piece in sorted(ids, key=ids.__getitem__) if piece not in dropped]
    return pieces, merges, characters


def _merges_of(model):
    """Returns the merges of a model of the library, the first learned one first."""
    merges = json.loads(model.to_str())["model"]["merges"]
    return [tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in merges]


def _without_special(merges):
    """Drops merges that give the name of a special token, and those that depend on them."""
    known, kept = set(BYTE_CHARACTERS), []
    for merge in merges:
        product = "".join(merge)
        if known.issuperset(merge) and product not in SPECIAL_PIECES and product not in known:
            known.add(product)
            kept.append(merge)
    return kept
