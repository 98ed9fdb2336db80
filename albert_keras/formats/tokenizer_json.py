"""The `tokenizer.json` of Hugging Face, back into a SentencePiece model or a list of word pieces.

Whatever our tokenizers cannot express is refused by name, never dropped.
"""

import base64
from typing import NamedTuple

from sentencepiece.sentencepiece_model_pb2 import ModelProto, TrainerSpec

from albert_keras.formats.tokenizer_json_writing import (
    USER_DEFINED_SCORE,
    is_leading_step,
    marks_step,
    space_steps,
)
from data_pipeline.errors import InputError
from data_pipeline.limits import parse_json
from data_pipeline.tokenizers.vocabulary import USER_DEFINED_SYMBOLS
from data_pipeline.tokenizers.vocabulary_files import CONTROL_SYMBOLS, SPACE, Piece
from data_pipeline.tokenizers.wordpiece import MAX_WORD_CHARACTERS, read_pieces

#: The steps of a normalizer that our clean-up, or a SentencePiece model, takes as well.
_STEPS = ("NFKD", "StripAccents", "NFC", "NFKC", "Lowercase", "Precompiled", "Replace")
#: Longest word of the library tokenizers, if its file says nothing else.
USUAL_LONGEST = 100
#: What the tokenizers of transformers replace by "; google-research/albert and we do not.
_QUOTES = ("``", "''")


class FromJson(NamedTuple):
    """The contents of a `tokenizer.json`, as a file that our tokenizers read."""

    file_name: str  #: "spiece.model" or "vocab.txt".
    content: bytes
    lower_case: bool
    strip_accents: bool
    max_word_characters: int = MAX_WORD_CHARACTERS  #: Longer words are unknown, in WordPiece.


def read_tokenizer_json(content: bytes, name: str = "tokenizer.json") -> FromJson:
    """Rebuilds the file that a `tokenizer.json`, called `name` in errors, was made from.

    A Unigram model becomes a SentencePiece model with the same pieces, scores and normalization;
    WordPiece a `vocab.txt`.

    Raises:
        InputError: If it is damaged, contains a model of another kind, or something that cannot be
            expressed: another normalizer or pre-tokenizer, pieces added after the vocabulary.
    """
    readers = {"Unigram": _read_unigram, "WordPiece": _read_word_pieces}
    try:
        values = parse_json(content)
        kind = values["model"].get("type")
        if kind not in readers:
            raise InputError(
                f"The model in `{name}` must be Unigram or WordPiece. Received: {kind}."
            )
        return readers[kind](values, name)
    except InputError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"`{name}` is not the tokenizer of an ALBERT or BERT: {error!r}."
        ) from error


def _read_unigram(values, name):
    model = values["model"]
    if model.get("byte_fallback"):
        raise _inexpressible(name, "model.byte_fallback", True)
    steps = _steps(values.get("normalizer"), "normalizers")
    charsmap, *settings = _normalization(steps, name)
    for step in _steps(values.get("pre_tokenizer"), "pretokenizers"):
        _check_pre_tokenizer(step, name)
    vocab = [(str(piece), float(score)) for piece, score in model["vocab"]]
    if type(unk_id := model.get("unk_id")) is not int or not 0 <= unk_id < len(vocab):
        raise InputError(
            f"`model.unk_id` of `{name}` must be the id of the piece for unknown text, from 0 to "
            f"{len(vocab) - 1:,}. Received: {unk_id!r}."
        )
    types = _types(values.get("added_tokens") or (), vocab, unk_id, name)
    return FromJson("spiece.model", _unigram_model(vocab, types, charsmap), *settings)


def _unigram_model(vocab: list[tuple[str, float]], types: list[int], charsmap: bytes) -> bytes:
    """Returns the file of a SentencePiece unigram model of pieces, their scores and types, by id.

    `charsmap` is the compiled rules of the normalizer; empty for none. Runs of spaces become one in
    any case, and a space is put before the text.
    """
    names = [piece for piece, _ in vocab]
    unk_id = types.index(Piece.UNKNOWN)
    model = ModelProto()
    for (piece, score), type in zip(vocab, types, strict=True):
        model.pieces.add(piece=piece, score=score, type=type)
    spec = model.trainer_spec
    spec.model_type, spec.vocab_size = TrainerSpec.UNIGRAM, len(vocab)
    spec.unk_id, spec.unk_piece = unk_id, names[unk_id]
    spec.bos_id = spec.eos_id = -1
    spec.pad_id = names.index("<pad>") if "<pad>" in names else -1
    rules = model.normalizer_spec
    rules.name, rules.precompiled_charsmap = "precompiled" if charsmap else "identity", charsmap
    rules.add_dummy_prefix = rules.remove_extra_whitespaces = rules.escape_whitespaces = True
    return model.SerializeToString(deterministic=True)


def _types(added, vocab, unk_id, name) -> list[int]:
    """Returns the types of the pieces, such as control symbols."""
    types = [Piece.NORMAL] * len(vocab)
    for id, (text, score) in enumerate(vocab):
        # The scores of trained pieces are log-probabilities; older files do not list these symbols.
        if score in (0, USER_DEFINED_SCORE) and text in USER_DEFINED_SYMBOLS:
            types[id] = Piece.USER_DEFINED
        elif score == 0 and text in ("<pad>", *CONTROL_SYMBOLS):
            types[id] = Piece.CONTROL
    for token in added:
        text, id = token["content"], token["id"]
        if not 0 <= id < len(vocab) or vocab[id][0] != text:
            raise _inexpressible(name, "added_tokens", f"{text!r}, {id}, not in the vocabulary")
        if token.get("special"):
            types[id] = Piece.CONTROL
        elif token.get("lstrip") or token.get("rstrip") or token.get("single_word"):
            raise _inexpressible(
                name, "added_tokens", f"{text!r}, which includes the spaces around it"
            )
        else:
            types[id] = Piece.USER_DEFINED
    types[unk_id] = Piece.UNKNOWN
    return types


def _normalization(steps, name):
    """Returns the rules of the model, whether text is lower-cased, and whether accents are removed;
    steps that cannot be expressed are refused.
    """
    kinds, charsmap = set(), b""
    for step in steps:
        kind = step["type"]
        if kind not in _STEPS:
            raise _inexpressible(name, "normalizer", kind)
        if charsmap and kind != "Replace":
            raise _inexpressible(name, "normalizer", f"{kind} after Precompiled")
        if kind == "Precompiled":
            charsmap = base64.b64decode(step["precompiled_charsmap"], validate=True)
        elif step == marks_step():
            kind = "StripAccents"
        elif kind == "Replace":
            pattern, content = step["pattern"], step["content"]
            are_quotes = pattern.get("String") in _QUOTES and content == '"'
            # SentencePiece does the others.
            if not are_quotes and step not in space_steps() and not is_leading_step(step):
                raise _inexpressible(name, "normalizer", f"Replace {pattern} by {content!r}")
        kinds.add(kind)
    accents = {"NFKD", "StripAccents"} & kinds
    if len(accents) == 1:
        raise _inexpressible(name, "normalizer", f"{accents.pop()} alone")
    return charsmap, "Lowercase" in kinds, bool(accents)


def _check_pre_tokenizer(step, name):
    if step["type"] == "WhitespaceSplit":
        return
    if step["type"] != "Metaspace" or step.get("replacement", SPACE) != SPACE:
        raise _inexpressible(name, "pre_tokenizer", step["type"])
    scheme = step.get("prepend_scheme", "always" if step.get("add_prefix_space", True) else "never")
    if scheme == "never":
        raise _inexpressible(name, "pre_tokenizer", "Metaspace without a space before the text")


def _read_word_pieces(values, name):
    model = values["model"]
    if model.get("continuing_subword_prefix", "##") != "##":
        prefix = model["continuing_subword_prefix"]
        raise _inexpressible(name, "model.continuing_subword_prefix", prefix)
    longest = model.get("max_input_chars_per_word", USUAL_LONGEST)
    if type(longest) is not int or longest < 1:
        raise InputError(
            f"`model.max_input_chars_per_word` of `{name}` must be a number of characters. "
            f"Received: {longest!r}."
        )
    ids = model["vocab"]
    pieces = sorted(ids, key=ids.get)
    if [ids[piece] for piece in pieces] != list(range(len(pieces))):
        raise InputError(f"The ids in `{name}` must be 0 to {len(pieces) - 1:,}, each once.")
    for piece in pieces:
        if read_pieces(f"{piece}\n".encode()) != [piece]:
            raise _inexpressible(name, "model.vocab", f"{piece!r}, with white space")
    content = "".join(f"{piece}\n" for piece in pieces).encode()
    lower_case, strip_accents = _case_of_bert(values.get("normalizer") or {"type": "none"}, name)
    for step in _steps(values.get("pre_tokenizer"), "pretokenizers"):
        if step["type"] != "BertPreTokenizer":
            raise _inexpressible(name, "pre_tokenizer", step["type"])
    return FromJson("vocab.txt", content, lower_case, strip_accents, longest)


def _case_of_bert(normalizer, name):
    """Returns whether text is lower-cased, and whether accents are removed."""
    if normalizer["type"] != "BertNormalizer":
        raise _inexpressible(name, "normalizer", normalizer["type"])
    lower_case = normalizer["lowercase"]
    for switch in ("clean_text", "handle_chinese_chars"):
        if not normalizer.get(switch, True):
            raise _inexpressible(name, f"normalizer.{switch}", False)
    strip_accents = normalizer.get("strip_accents")
    return lower_case, lower_case if strip_accents is None else strip_accents


def _steps(part, key):
    """Returns the steps of a part of the pipeline, which is one step or a sequence of them."""
    if part is None:
        return []
    return part[key] if part["type"] == "Sequence" else [part]


def _inexpressible(name, key, received):
    return InputError(
        f"`{key}` of `{name}` cannot be expressed here. Received: {received}. Pass another "
        "vocabulary as `tokenizer`, such as the vocab.txt of the folder, if your texts do not "
        "need it."
    )
