"""A `tokenizer.json` of Hugging Face with which transformers tokenizes as `Tokenizer` does.

transformers would otherwise derive one from `spiece.model`. In it the text around `( ) " - .` and
every other user-defined symbol is tokenized separately, each part with a `▁` of its own, and the
comma after a number is not split off.
"""

import base64
import functools
import json
import sys
import unicodedata
from typing import Any

from data_pipeline.tokenizers.cleanup import character_class, character_ranges
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import USER_DEFINED_SYMBOLS
from data_pipeline.tokenizers.vocabulary_files import SPACE, Piece, is_unigram, read_model

#: Of user-defined symbols, if no piece scores more than 0, as in all trained vocabularies.
USER_DEFINED_SCORE = -0.1
#: How much less an unknown piece scores than the worst known one, as in SentencePiece.
_UNKNOWN_PENALTY = 10.0
#: The start of a text, in the regular expressions of `tokenizers`.
_TEXT_START = r"\A"


def _step(kind, **settings) -> dict[str, Any]:
    return {"type": kind, **settings}


def _replace(pattern, content, kind="Regex"):
    return _step("Replace", pattern={kind: pattern}, content=content)


#: SentencePiece removes spaces that follow another, and those at the end of a text.
_FEWER_SPACES = (_replace(" {2,}", " "), _replace(r" +\z", ""))


@functools.cache
def space_steps() -> tuple[dict[str, Any], ...]:
    """Returns the steps that replace white space by single spaces, none of them at the end."""
    return _replace(character_class(character_ranges(str.isspace)) + "+", " "), *_FEWER_SPACES


@functools.cache
def marks_step() -> dict[str, Any]:
    """Returns the step that deletes the marks that `clean_up` deletes after decomposition."""
    return _replace(character_class(character_ranges(unicodedata.combining)) + "+", "")


def is_leading_step(step: dict[str, Any]) -> bool:
    """Returns whether a step replaces what is deleted before the first letter by a space."""
    regex = step["pattern"].get("Regex", "")
    return step["content"] == " " and regex.startswith(f"{_TEXT_START}[")


def tokenizer_json(tokenizer: Tokenizer) -> bytes | None:
    """Returns the content of a `tokenizer.json` for a tokenizer.

    None if the tokenizer is WordPiece, for which transformers needs `vocab.txt` only, or a
    SentencePiece model that is not a unigram model with the usual treatment of spaces and the usual
    user-defined symbols, which no rule changes.
    """
    if tokenizer.config.kind != "unigram" or not is_unigram(tokenizer.model_bytes):
        return None
    model = read_model(tokenizer.model_bytes)
    spaces = model.normalizer_spec
    symbols = {piece.piece for piece in model.pieces if piece.type == Piece.USER_DEFINED}
    is_usual = (
        spaces.add_dummy_prefix
        and spaces.remove_extra_whitespaces
        and spaces.escape_whitespaces
        and not model.trainer_spec.treat_whitespace_as_suffix
        and symbols <= set(USER_DEFINED_SYMBOLS)
    )
    if not is_usual:
        return None
    values = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _special_tokens(tokenizer),
        "normalizer": _step("Sequence", normalizers=_normalizers(tokenizer, model)),
        "pre_tokenizer": _metaspace("first"),
        "post_processor": template(tokenizer),
        "decoder": _metaspace("always"),
        "model": {
            "type": "Unigram",
            "unk_id": tokenizer.unk_id,
            "vocab": _scored_pieces(model, tokenizer.model.digit_comma),
            "byte_fallback": False,
        },
    }
    return (json.dumps(values, ensure_ascii=False, indent=1) + "\n").encode()


def special_tokens(tokenizer: Tokenizer) -> dict[str, str]:
    """Returns the names of special tokens as `tokenizer_config.json` has them."""
    ids = {
        "bos_token": tokenizer.cls_id,
        "eos_token": tokenizer.sep_id,
        "cls_token": tokenizer.cls_id,
        "sep_token": tokenizer.sep_id,
        "mask_token": tokenizer.mask_id,
        "pad_token": tokenizer.pad_id,
        "unk_token": tokenizer.unk_id,
    }
    return {name: tokenizer.piece_of(id) for name, id in ids.items()}


def _metaspace(prepend_scheme):
    return _step("Metaspace", replacement=SPACE, prepend_scheme=prepend_scheme, split=True)


def _special_tokens(tokenizer):
    ids = sorted(set(map(tokenizer.id_of, special_tokens(tokenizer).values())))
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return [{"id": id, "content": tokenizer.piece_of(id), **flags, "special": True} for id in ids]


def _normalizers(tokenizer, model):
    """Returns the steps that do what `clean_up` and the normalizer of SentencePiece do.

    Precompiled applies the rules of the model to single characters as SentencePiece does, but to
    sequences of them only sometimes. Characters are composed and lower-cased before it, so that
    these rules are not needed.
    """
    config, charsmap = tokenizer.config, model.normalizer_spec.precompiled_charsmap
    # A space in place of what is deleted before the first letter: Metaspace puts a space only where
    # the first character of the text is still there.
    steps = [_replace(f"{_TEXT_START}{_class_of(_deleted_characters(tokenizer))}+", " ")]
    if config.cleanup == "reference":
        steps.append(space_steps()[0])
        if config.strip_accents:
            steps += [_step("NFKD"), marks_step()]
        else:
            steps.append(_step("NFKC"))
    steps += [_step("NFC")] if charsmap else []
    steps += [_step("Lowercase")] if config.lower_case else []
    if charsmap:
        encoded = base64.b64encode(charsmap).decode()
        steps.append(_step("Precompiled", precompiled_charsmap=encoded))
    return [*steps, *_FEWER_SPACES]


def _deleted_characters(tokenizer):
    """Returns the marks and control characters that the clean-up of a tokenizer deletes."""
    found = [
        character
        for character in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(character) in ("Mn", "Mc", "Me", "Cc", "Cf")
    ]
    without = tokenizer.encode("ab")
    return {character for character in found if tokenizer.encode(f"a{character}b") == without}


def _class_of(characters):
    """Returns a set of characters as a class of the regular expressions of `tokenizers`."""
    return character_class(character_ranges(characters.__contains__))


def _scored_pieces(model, replaced):
    """Returns pieces and scores, with which the best path is the same as in our tokenizers.

    SentencePiece prefers user-defined symbols to all other pieces. A piece that ends with a number
    and a comma must score less than the pieces that replace it: `replaced` has their ids by its.
    """
    normal = [piece.score for piece in model.pieces if piece.type == Piece.NORMAL]
    best, unknown = max(0.0, *normal), min(normal) - _UNKNOWN_PENALTY
    scores = [piece.score for piece in model.pieces]
    for id, piece in enumerate(model.pieces):
        if piece.type == Piece.USER_DEFINED:
            scores[id] = best * len(piece.piece.encode()) + USER_DEFINED_SCORE
    for id, parts in replaced.items():
        is_unknown = [model.pieces[part].type == Piece.UNKNOWN for part in parts]
        scores[id] = sum(scores[part] for part in parts) + unknown * sum(is_unknown) - 1
    return [[piece.piece, score] for piece, score in zip(model.pieces, scores, strict=True)]


def template(tokenizer: Tokenizer, has_segments: bool = True) -> dict[str, Any]:
    """Returns the step that makes `[CLS] A [SEP]` and `[CLS] A [SEP] B [SEP]`,
    or with two [SEP] between A and B.

    `has_segments` is whether the second text has another segment id than the first.
    """

    def special(symbol, segment):
        return {"SpecialToken": {"id": symbol, "type_id": segment}}

    def sequence(name, segment):
        return {"Sequence": {"id": name, "type_id": segment}}

    ids = {tokenizer.piece_of(id): id for id in (tokenizer.cls_id, tokenizer.sep_id)}
    cls, sep = ids
    single = [special(cls, 0), sequence("A", 0), special(sep, 0)]
    between = [special(sep, 0)] * (tokenizer.pair_separators - 1)
    second = int(has_segments)
    return _step(
        "TemplateProcessing",
        single=single,
        pair=[*single, *between, sequence("B", second), special(sep, second)],
        special_tokens={
            symbol: {"id": symbol, "ids": [id], "tokens": [symbol]} for symbol, id in ids.items()
        },
    )
