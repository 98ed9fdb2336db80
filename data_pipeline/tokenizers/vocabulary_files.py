"""The files of a vocabulary: SentencePiece models, and the configuration beside one.

`tokenization` reads them, and `vocabulary` trains and writes them.
"""

from pathlib import Path
from typing import Any, Literal

from sentencepiece.sentencepiece_model_pb2 import ModelProto, TrainerSpec

from data_pipeline.files import whole_file
from data_pipeline.settings import Settings

MODEL_FILE = "tokenizer.model"
VOCAB_FILE = "tokenizer.vocab"
#: Kind of vocabulary -> its file.
FILES = {"unigram": MODEL_FILE, "wordpiece": "vocab.txt", "bpe": "tokenizer.json"}
CONFIG_FILE = "tokenizer_config.json"
#: Folder of a tokenizer beside what it is for: records, a run, a model.
TOKENIZER_FOLDER = "tokenizer"

#: SentencePiece's sign for a space.
SPACE = "▁"

#: In the order of their ids: with <pad> 0 and <unk> 1 these are 2 to 4.
CONTROL_SYMBOLS = ("[CLS]", "[SEP]", "[MASK]")

#: The class of a piece, and of its types.
Piece = ModelProto.SentencePiece
#: The rules of a normaliser without rules: size of a trie, the trie, and no text. SentencePiece
#: prints a line if there are no bytes at all.
_NO_RULES = (1024).to_bytes(4, "little") + bytes(1024 + 1)


class TokenizerConfig(Settings):
    """The content of `tokenizer_config.json`, which describes the SentencePiece model beside it.

    `lower_case` and `strip_accents`: see `clean_up`. With `compat_py3`, a piece inside a word, such
    as `12,`, keeps the spurious `▁` that the original leaves before it when run under Python 3.
    """

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


def tokenizer_files(model: bytes, config: Any) -> dict[str, bytes]:
    """Returns the files of a tokenizer of any kind by name, the configuration last."""
    files = {FILES[config.kind]: model}
    if config.kind == "unigram":
        pieces = "".join(f"{piece.piece}\t{piece.score:g}\n" for piece in read_model(model).pieces)
        files[VOCAB_FILE] = pieces.encode()
    described = config.model_dump_json(indent=2, exclude_none=True)
    files[CONFIG_FILE] = f"{described}\n".encode()
    return files


def write_tokenizer_files(folder: Path, model: bytes, config: Any) -> None:
    """Writes the files of a tokenizer of any kind into a folder, the configuration last."""
    for name, content in tokenizer_files(model, config).items():
        with whole_file(folder / name) as temporary:
            temporary.write_bytes(content)


def read_model(model: bytes) -> ModelProto:
    """Parses a SentencePiece model file; raises protobuf's DecodeError if it is not one."""
    return ModelProto.FromString(model)


def write_model(model: ModelProto) -> bytes:
    """Returns the file of a SentencePiece model.

    Its parts are in the order of earlier versions, so that the same texts still give the same file.
    """
    trainer, others = ModelProto(trainer_spec=model.trainer_spec), ModelProto()
    others.CopyFrom(model)
    others.ClearField("trainer_spec")
    return b"".join(part.SerializeToString(deterministic=True) for part in (others, trainer))


def is_unigram(model: bytes) -> bool:
    """Returns whether a SentencePiece model file is a unigram model without byte pieces."""
    given = read_model(model)
    has_bytes = any(piece.type == Piece.BYTE for piece in given.pieces)
    return given.trainer_spec.model_type == TrainerSpec.UNIGRAM and not has_bytes


def models_of_steps(model: bytes) -> tuple[bytes, bytes, list[bytes]]:
    """Returns two model files that tokenize in two steps, to learn what happens in between.

    The first one splits a text into the parts of its normalised form: single bytes, and symbols
    that are never normalised. The second one splits the normalised form as the given model splits
    the text.

    Returns:
        Both files, and what each id of the first one stands for.
    """
    given = read_model(model)
    fixed = [p for p in given.pieces if p.type in (Piece.UNKNOWN, Piece.USER_DEFINED)]
    first, contents = ModelProto(normalizer_spec=given.normalizer_spec), []
    first.trainer_spec.CopyFrom(given.trainer_spec)
    first.trainer_spec.model_type, first.trainer_spec.byte_fallback = TrainerSpec.CHAR, True
    for piece in fixed:
        first.pieces.add(piece=piece.piece, type=piece.type)
        contents.append(piece.piece.encode())
    for byte in range(256):
        first.pieces.add(piece=f"<0x{byte:02X}>", type=Piece.BYTE)
        contents.append(bytes([byte]))
    second = ModelProto(pieces=given.pieces, trainer_spec=given.trainer_spec)
    rules = second.normalizer_spec
    rules.precompiled_charsmap = _NO_RULES
    rules.add_dummy_prefix = rules.remove_extra_whitespaces = rules.escape_whitespaces = False
    return first.SerializeToString(), second.SerializeToString(), contents
