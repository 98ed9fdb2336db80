"""A SentencePiece model put together from its pieces and its normalisation."""

from typing import NamedTuple

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_FIELD = descriptor_pb2.FieldDescriptorProto
_TEXT, _BYTES, _BOOL = _FIELD.TYPE_STRING, _FIELD.TYPE_BYTES, _FIELD.TYPE_BOOL
_INT, _FLOAT = _FIELD.TYPE_INT32, _FIELD.TYPE_FLOAT
_UNIGRAM, _UNKNOWN = 1, 2


class Piece(NamedTuple):
    """A piece of a vocabulary.

    Attributes:
        piece: str.
        score: float. Logarithm of its probability.
        type: int. As in `sentencepiece_model.proto`: 1 normal, 2 unknown, 3 control symbol,
            4 user defined.
    """

    piece: str
    score: float
    type: int


def unigram_model(pieces, charsmap) -> bytes:
    """Makes the file of a SentencePiece unigram model.

    Args:
        pieces: sequence of Piece, by id. One is unknown.
        charsmap: bytes. The compiled rules of the normaliser; empty for none. Runs of spaces
            become one in any case, and a space is put before the text.

    Source:
        `sentencepiece_model.proto` in google/sentencepiece.
    """
    names = [piece.piece for piece in pieces]
    trainer = {
        "model_type": _UNIGRAM,
        "vocab_size": len(pieces),
        "unk_id": [piece.type for piece in pieces].index(_UNKNOWN),
        "bos_id": -1,
        "eos_id": -1,
        "pad_id": names.index("<pad>") if "<pad>" in names else -1,
    }
    trainer["unk_piece"] = names[trainer["unk_id"]]
    normalizer = {
        "name": "precompiled" if charsmap else "identity",
        "precompiled_charsmap": charsmap,
        "add_dummy_prefix": True,
        "remove_extra_whitespaces": True,
        "escape_whitespaces": True,
    }
    model = _MODEL(
        pieces=[piece._asdict() for piece in pieces],
        trainer_spec=trainer,
        normalizer_spec=normalizer,
    )
    return model.SerializeToString(deterministic=True)


#: Name of the message -> its fields: name -> number and type.
_MESSAGES = {
    "Piece": {"piece": (1, _TEXT), "score": (2, _FLOAT), "type": (3, _INT)},
    "Trainer": {
        "model_type": (3, _INT),
        "vocab_size": (4, _INT),
        "unk_id": (40, _INT),
        "bos_id": (41, _INT),
        "eos_id": (42, _INT),
        "pad_id": (43, _INT),
        "unk_piece": (45, _TEXT),
    },
    "Normalizer": {
        "name": (1, _TEXT),
        "precompiled_charsmap": (2, _BYTES),
        "add_dummy_prefix": (3, _BOOL),
        "remove_extra_whitespaces": (4, _BOOL),
        "escape_whitespaces": (5, _BOOL),
    },
    "Model": {
        "pieces": (1, "Piece"),
        "trainer_spec": (2, "Trainer"),
        "normalizer_spec": (3, "Normalizer"),
    },
}


def _model_message():
    file = descriptor_pb2.FileDescriptorProto(name="unigram_model.proto", syntax="proto2")
    for message_name, fields in _MESSAGES.items():
        message = file.message_type.add(name=message_name)
        for name, (number, kind) in fields.items():
            label = _FIELD.LABEL_REPEATED if name == "pieces" else _FIELD.LABEL_OPTIONAL
            words = {"type": kind} if isinstance(kind, int) else {"type_name": kind}
            words = words if "type" in words else words | {"type": _FIELD.TYPE_MESSAGE}
            message.field.add(name=name, number=number, label=label, **words)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Model"))


_MODEL = _model_message()


def read_charsmap(model) -> bytes:
    """Returns the compiled rules of the normaliser in the file of a SentencePiece model (bytes)."""
    return _MODEL.FromString(model).normalizer_spec.precompiled_charsmap
