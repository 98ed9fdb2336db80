"""The files of a vocabulary: SentencePiece models, and the configuration beside one.

`tokenization` reads them, and `vocabulary` trains and writes them.
"""

from pathlib import Path
from typing import Any, Literal

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from data_pipeline.settings import Settings

MODEL_FILE = "tokenizer.model"
VOCAB_FILE = "tokenizer.vocab"
#: Kind of vocabulary -> its file.
FILES = {"unigram": MODEL_FILE, "wordpiece": "vocab.txt", "bpe": "tokenizer.json"}
CONFIG_FILE = "tokenizer_config.json"

#: SentencePiece's sign for a space.
SPACE = "▁"

#: In the order of their ids: with <pad> 0 and <unk> 1 these are 2 to 4.
CONTROL_SYMBOLS = ("[CLS]", "[SEP]", "[MASK]")

#: Settings of the normaliser of a model, in the order of their numbers from 3 on.
_SWITCHES = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
#: The rules of a normaliser without rules: size of a trie, the trie, and no text. SentencePiece
#: prints a line if there are no bytes at all.
_NO_RULES = (1024).to_bytes(4, "little") + bytes(1024 + 1)


class TokenizerConfig(Settings):
    """The content of `tokenizer_config.json`, which describes the SentencePiece model beside it.

    `lower_case` and `strip_accents`: see `clean_up`. With `compat_py3`, a piece inside a word, such
    as `12,`, keeps the spurious `▁` that the original leaves before it when run under Python 3.
    """

    #: Not stored in the file, whose format is older than the other kind.
    kind: Literal["unigram"] = "unigram"
    #: Whether SentencePiece's normaliser does the clean-up, or `clean_up` must run first.
    cleanup: Literal["model", "reference"]
    lower_case: bool
    strip_accents: bool
    compat_py3: bool = False
    vocab_size: int
    sha256: str  # of the model file, in hexadecimal
    version: Literal[1] = 1  # of this format
    extends: str | None = None  # digest of the tokenizer that was extended to make this one


def write_tokenizer_files(folder: Path, model: bytes, config: Any) -> None:
    """Writes the files of a tokenizer of any kind into a folder, the configuration last."""
    (folder / FILES[config.kind]).write_bytes(model)
    unused: set[str] = set()
    if config.kind == "unigram":
        pieces = "".join(f"{piece.piece}\t{piece.score:g}\n" for piece in read_model(model).pieces)
        (folder / VOCAB_FILE).write_text(pieces, encoding="utf-8", newline="")
        unused = {"kind"} if config.extends else {"kind", "extends"}
    described = config.model_dump_json(indent=2, exclude=unused)
    (folder / CONFIG_FILE).write_text(described + "\n", encoding="utf-8")


def read_model(model: bytes):
    """Parses a SentencePiece model file; raises protobuf's DecodeError if it is not one.

    The protocol buffer has the fields of `_model_messages`, and preserves all others when it is
    serialised.
    """
    return _MODEL.FromString(model)


def is_unigram(model: bytes) -> bool:
    """Returns whether a SentencePiece model file is a unigram model without byte pieces."""
    model_type = _TRAINED_MODEL.FromString(model).trainer_spec.model_type or _UNIGRAM
    has_bytes = any(piece.type == _BYTE for piece in read_model(model).pieces)
    return model_type == _UNIGRAM and not has_bytes


def models_of_steps(model: bytes) -> tuple[bytes, bytes, list[bytes]]:
    """Returns two model files that tokenize in two steps, to learn what happens in between.

    The first one splits a text into the parts of its normalised form: single bytes, and symbols
    that are never normalised. The second one splits the normalised form as the given model splits
    the text.

    Returns:
        Both files, and what each id of the first one stands for.
    """
    given, options = read_model(model), _TRAINED_MODEL.FromString(model).trainer_spec
    fixed = [piece for piece in given.pieces if piece.type in (_UNKNOWN, _USER_DEFINED)]
    first, contents = _MODEL(normalizer_spec=given.normalizer_spec), []
    for piece in fixed:
        first.pieces.add(piece=piece.piece, type=piece.type)
        contents.append(piece.piece.encode())
    for byte in range(256):
        first.pieces.add(piece=f"<0x{byte:02X}>", type=_BYTE)
        contents.append(bytes([byte]))
    second = _MODEL(pieces=given.pieces)
    no_rules = {"precompiled_charsmap": _NO_RULES} | dict.fromkeys(_SWITCHES, False)
    unchanged = _TRAINED_MODEL(trainer_spec=options, normalizer_spec=no_rules)
    options.model_type, options.byte_fallback = _SINGLE_CHARACTERS, True
    # The two parts of a file, one after the other, are a file.
    by_bytes = first.SerializeToString() + _TRAINED_MODEL(trainer_spec=options).SerializeToString()
    return by_bytes, second.SerializeToString() + unchanged.SerializeToString(), contents


def _model_messages():
    """Returns the class of models, and another one for the part that training describes.

    One class for both would write the fields of a model in another order, and so another file.

    Source: `sentencepiece_model.proto` in google/sentencepiece. Its generated Python module needs
    a newer protobuf than TensorFlow 2.15 allows.
    """
    messages = {
        "Piece": {"piece": (1, "STRING"), "score": (2, "FLOAT"), "type": (3, "INT32")},
        "Normalizer": {"name": (1, "STRING"), "normalization_rule_tsv": (6, "STRING")},
        "Model": {"pieces": (1, "Piece"), "normalizer_spec": (3, "Normalizer")},
        "Trainer": {"model_type": (3, "INT32"), "byte_fallback": (35, "BOOL")},
        "Options": {"precompiled_charsmap": (2, "BYTES")}
        | {name: (number, "BOOL") for number, name in enumerate(_SWITCHES, 3)},
        "TrainedModel": {"trainer_spec": (2, "Trainer"), "normalizer_spec": (3, "Options")},
    }
    file = descriptor_pb2.FileDescriptorProto(name="model.proto", syntax="proto2")
    for message_name, fields in messages.items():
        message = file.message_type.add(name=message_name)
        for name, (number, kind) in fields.items():
            label = "LABEL_REPEATED" if name == "pieces" else "LABEL_OPTIONAL"
            kinds = {"type_name": kind} if kind in messages else {"type": f"TYPE_{kind}"}
            message.field.add(name=name, number=number, label=label, **kinds)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    names = "Model", "TrainedModel"
    return [message_factory.GetMessageClass(pool.FindMessageTypeByName(name)) for name in names]


_MODEL, _TRAINED_MODEL = _model_messages()
#: Values of `model_type`, which is optional, and of a piece's `type`.
_UNIGRAM, _SINGLE_CHARACTERS = 1, 4
NORMAL, _UNKNOWN, _USER_DEFINED, _BYTE = 1, 2, 4, 6
