"""A vocabulary grows: old pieces keep their ids, new ones win where they should."""

import itertools

import pytest

from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_extension import (
    extend_vocabulary,
    is_extension,
    segments_of_added,
)
from data_pipeline.tokenizers.vocabulary_files import read_model

DOMAIN = (
    "The cardiologist examined the electrocardiogram.",
    "Electrocardiograms worry cardiologists less than patients.",
    "A μm is small; a μg is light. Cardiologists know both.",
    "Two cardiologists and one neurologist read the electrocardiogram.",
)


@pytest.fixture(scope="module")
def extended(tiny_tokenizer, tmp_path_factory):
    out = tmp_path_factory.mktemp("extended") / "tokenizer"
    extend_vocabulary(tiny_tokenizer, DOMAIN, out, 6)
    return Tokenizer.load(out)


def added(old, new):
    return [new.piece_of(id) for id in range(old.vocab_size, new.vocab_size)]


def spelled_out(old, new, ids):
    """Writes new pieces as the old ones they were made of."""
    segments = segments_of_added(old, new)
    size = old.vocab_size
    return list(
        itertools.chain.from_iterable(segments[id - size] if id >= size else [id] for id in ids)
    )


def test_old_pieces_keep_their_ids_and_scores(tiny_tokenizer, extended):
    old = read_model(tiny_tokenizer.model_bytes).pieces
    new = read_model(extended.model_bytes).pieces
    assert len(new) == len(old) + 6 and list(new[: len(old)]) == list(old)
    assert is_extension(tiny_tokenizer, extended) and not is_extension(extended, tiny_tokenizer)
    assert extended.cls_id == tiny_tokenizer.cls_id and extended.config.vocab_size == 313


def test_the_pieces_that_save_most_are_added(tiny_tokenizer, extended):
    pieces = added(tiny_tokenizer, extended)
    assert "▁cardiologist" in pieces and "▁μ" in pieces
    for text in DOMAIN:
        assert len(extended.encode(text)) < len(tiny_tokenizer.encode(text))
    assert extended.pieces("one cardiologist")[-1] == "▁cardiologist"
    assert extended.pieces("μm") == ["▁μ", "m"] and extended.unk_id not in extended.encode("μm")
    assert tiny_tokenizer.unk_id in tiny_tokenizer.encode("μm")


def test_text_is_split_as_before_but_for_the_joined_runs(tiny_tokenizer, extended, tiny_corpus):
    for text in (*tiny_corpus, *DOMAIN[:2]):
        ids = extended.encode(text)
        assert spelled_out(tiny_tokenizer, extended, ids) == tiny_tokenizer.encode(text)


def test_segments_are_what_the_new_pieces_were_split_into(tiny_tokenizer, extended):
    segments = segments_of_added(tiny_tokenizer, extended)
    unknown = tiny_tokenizer.piece_of(tiny_tokenizer.unk_id)
    for piece, segment in zip(added(tiny_tokenizer, extended), segments, strict=True):
        joined = "".join(map(tiny_tokenizer.piece_of, segment))
        assert joined.replace(unknown, "μ") == piece and (len(segment) > 1 or piece == "μ")
