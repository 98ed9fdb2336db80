"""Which vocabulary a file holds: its pieces tell, its name does not.

A public fork of google-research/albert has German vocabularies that are called `30k-clean.model`
like the released English one. They were trained with the same options, so that the first 14 ids
are the same and everything loads; only the answers are nonsense.
"""

from typing import NamedTuple

from google.protobuf.message import DecodeError

from albert_keras.config import AlbertConfig
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.vocabulary import CONTROL_SYMBOLS, USER_DEFINED_SYMBOLS, read_model

#: Pieces 0 to 13 of all vocabularies trained with the options of google-research/albert.
_FIRST = ("<pad>", "<unk>", *CONTROL_SYMBOLS, *USER_DEFINED_SYMBOLS, "▁")
_LENGTH = 30_000
#: Name -> pieces, by id, that tell it from all others, and what to say.
_KNOWN = {
    "official-english": (
        {14: "▁the", 15: ",", 17: "▁and", 18: "s", 29_999: "▁eloquent"},
        "the official English vocabulary of the released ALBERT, 30,000 pieces",
    ),
    "german-30k": (
        {14: ",", 15: "▁der"},
        "the German vocabulary that goes by the name of the official English one "
        "(30k-clean.model), 30,000 pieces",
    ),
}
#: The formats in which the English ALBERT was released.
_RELEASED_FORMATS = ("google", "tf-hub", "hugging-face")


class VocabularyIdentity(NamedTuple):
    """Which vocabulary it is.

    Attributes:
        name: str. "official-english", "german-30k" or "own".
        sentence: str. What it is, for people.
    """

    name: str
    sentence: str


def identify(model_bytes) -> VocabularyIdentity:
    """Tells which vocabulary a SentencePiece model holds.

    Args:
        model_bytes: bytes. The file.

    Raises:
        InputError: If it is no SentencePiece model.

    Source:
        Ids of the released vocabulary as listed in google-research/albert#127.
    """
    try:
        pieces = [piece.piece for piece in read_model(model_bytes).pieces]
    except DecodeError as error:
        raise InputError(
            f"A vocabulary should be a SentencePiece model. Received: {error}."
        ) from error
    return identify_pieces(pieces)


def identify_pieces(pieces) -> VocabularyIdentity:
    """Tells which vocabulary some pieces (sequence of str, by id) are."""
    if len(pieces) == _LENGTH and tuple(pieces[: len(_FIRST)]) == _FIRST:
        for name, (marks, sentence) in _KNOWN.items():
            if all(pieces[id] == piece for id, piece in marks.items()):
                return VocabularyIdentity(name, sentence)
    return VocabularyIdentity("own", f"a vocabulary of {len(pieces):,} pieces of its own")


def check_identity(identity, config, source_format, is_told):
    """Refuses the German vocabulary beside what looks like a released English ALBERT.

    There are German models of the same shape, and nothing in their files tells them from the
    English ones. So the vocabulary is taken for them if the user names it, with `--tokenizer`.

    Args:
        identity: VocabularyIdentity.
        config: AlbertConfig. Of the weights.
        source_format: str. What they were read from.
        is_told: bool. Whether the user named this vocabulary.

    Raises:
        InputError: If it goes with weights of a released shape and was not asked for.
    """
    if is_told or identity.name != "german-30k" or source_format not in _RELEASED_FORMATS:
        return
    size = _released_size(config)
    if size is not None:
        raise InputError(
            f"The vocabulary beside weights of the shape of {size} should be the official English "
            f"one (14 is `▁the`, 29,999 `▁eloquent`). Received: {identity.sentence}. If the "
            "weights are German, say so: give that file with --tokenizer."
        )


def _released_size(config):
    """Returns the name of the released ALBERT of this shape, or None."""
    free = ("hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range")
    free += ("down_scale_factor", "foreign_keys")
    changes = {name: getattr(config, name) for name in free}
    for size in ("albert-base", "albert-large", "albert-xlarge", "albert-xxlarge"):
        if AlbertConfig.from_name(size).replace(**changes) == config:
            return size
    return None
