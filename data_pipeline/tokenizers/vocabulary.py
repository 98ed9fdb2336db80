"""Trains a SentencePiece vocabulary on a corpus, and knows the folder it is kept in.

The folder holds `tokenizer.model`, the same pieces for reading in `tokenizer.vocab`, and
`tokenizer_config.json`, which says how text is cleaned up and carries the model's hash.
`tokenization` loads it.
"""

import hashlib
import io
import itertools
import logging
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import sentencepiece
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_folder
from data_pipeline.settings import Settings
from data_pipeline.tokenizers.normalizer import apply_rules, normalization_rules, rules_tsv

logger = logging.getLogger(__name__)

MODEL_FILE = "tokenizer.model"
VOCAB_FILE = "tokenizer.vocab"
CONFIG_FILE = "tokenizer_config.json"

#: In the order of their ids: with <pad> 0 and <unk> 1 these are 2 to 4 and 5 to 12.
CONTROL_SYMBOLS = ("[CLS]", "[SEP]", "[MASK]")
USER_DEFINED_SYMBOLS = ("(", ")", '"', "-", ".", "–", "£", "€")

#: SentencePiece drops a longer sentence without a word, hence `_cut_to_size`.
_MAX_SENTENCE_BYTES = 4192

#: Each thread sums up its share of the sentences, so the number decides the last digits of the
#: scores. It is fixed, and not the machine's, so that every machine trains the same vocabulary.
_NUM_THREADS = 8

#: SentencePiece drops a sentence with U+2585, its own sign for unknown; NUL is no text.
_NOT_FOR_TRAINING = re.compile("[\u2585\0\ud800-\udfff]")
_SPACE = re.compile(r"\s")
_UNCOUNTED = frozenset(USER_DEFINED_SYMBOLS) | {" ", "▁"}


class TokenizerConfig(Settings):
    """What `tokenizer_config.json` says about the SentencePiece model beside it.

    Attributes:
        kind: str. "unigram", and not in the file, which is older than the other kind.
        cleanup: str. "model" if SentencePiece's normaliser does it, "reference" if `clean_up`
            has to run first.
        lower_case: bool. As in `clean_up`.
        strip_accents: bool. As in `clean_up`.
        compat_py3: bool. See `Tokenizer.load`.
        vocab_size: int. Number of pieces, V.
        sha256: str. Hash of the model file, in hexadecimal.
        version: int. Of this format.
    """

    kind: Literal["unigram"] = "unigram"
    cleanup: Literal["model", "reference"]
    lower_case: bool
    strip_accents: bool
    compat_py3: bool = False
    vocab_size: int
    sha256: str
    version: Literal[1] = 1


@dataclass(frozen=True)
class TrainedVocabulary:
    """A vocabulary on disk.

    Attributes:
        path: Path. Its folder.
        size: int. Number of pieces, V.
        sha256: str. Hash of the model file, in hexadecimal.
    """

    path: Path
    size: int
    sha256: str


def train_vocabulary(
    corpus_texts,
    out,
    size: int = 30_000,
    *,
    lower_case: bool = True,
    strip_accents: bool = True,
    character_coverage: float = 0.99995,
    hard_limit: bool = True,
    input_sentence_size: int = 10_000_000,
) -> TrainedVocabulary:
    """Trains a unigram vocabulary and writes its folder, whole or not at all.

    The same texts in the same order give the same bytes. There is no seed: the one random choice,
    which sentences to keep beyond `input_sentence_size`, has a seed fixed inside SentencePiece.

    Args:
        corpus_texts: iterable of str. Sentences or paragraphs, read once. Those longer than 4192
            bytes are cut at white space; none is skipped.
        out: path. The folder to write; it should not exist yet, or be empty.
        size: int. Number of pieces, V, the 13 special ones included.
        lower_case: bool. As in `clean_up`.
        strip_accents: bool. As in `clean_up`.
        character_coverage: float. Share of the corpus's characters that get a piece; the rest
            is unknown.
        hard_limit: bool. Whether a corpus too small for `size` is an error; otherwise the
            vocabulary gets as large as the corpus allows.
        input_sentence_size: int. Train on at most this many sentences, drawn from all.

    Returns:
        TrainedVocabulary.

    Raises:
        InputError: If the corpus is empty, `out` cannot be written or is not empty, or `size`
            does not suit the corpus.

    Source:
        The `spm_train` command in the README of google-research/albert.
    """
    out = Path(out)
    check_output_folder(out)
    model = _train(
        _Feed(corpus_texts),
        normalization_rules(lower_case, strip_accents),
        vocab_size=size,
        character_coverage=character_coverage,
        hard_vocab_limit=hard_limit,
        input_sentence_size=input_sentence_size,
    )
    config = TokenizerConfig(
        cleanup="model",
        lower_case=lower_case,
        strip_accents=strip_accents,
        vocab_size=len(read_model(model).pieces),
        sha256=hashlib.sha256(model).hexdigest(),
    )
    try:
        with whole_folder(out) as folder:
            write_tokenizer_files(folder, model, config)
    except OSError as error:
        raise InputError(f"`{out}` cannot be written: {error.strerror}.") from error
    return TrainedVocabulary(out, config.vocab_size, config.sha256)


def write_tokenizer_files(folder, model: bytes, config: TokenizerConfig) -> None:
    """Writes the three files of a tokenizer into an existing folder, the configuration last."""
    folder = Path(folder)
    pieces = "".join(f"{piece.piece}\t{piece.score:g}\n" for piece in read_model(model).pieces)
    (folder / MODEL_FILE).write_bytes(model)
    (folder / VOCAB_FILE).write_text(pieces, encoding="utf-8", newline="")
    described = config.model_dump_json(indent=2, exclude={"kind"})
    (folder / CONFIG_FILE).write_text(described + "\n", encoding="utf-8")


def read_model(model: bytes):
    """Parses a SentencePiece model file as far as we need it.

    Args:
        model: bytes. Content of the file.

    Returns:
        Protocol buffer with `pieces` (each `piece`, `score`, `type`) and `normalizer_spec`
        (`name`, `normalization_rule_tsv`). What is not listed survives serialisation.

    Raises:
        google.protobuf.message.DecodeError: If the bytes are no protocol buffer.

    Source:
        `sentencepiece_model.proto` in google/sentencepiece. Its generated Python module needs a
        newer protobuf than TensorFlow 2.15 allows.
    """
    return _MODEL.FromString(model)


def _model_message():
    field = descriptor_pb2.FieldDescriptorProto
    messages = {
        "Piece": [
            ("piece", 1, field.TYPE_STRING, None),
            ("score", 2, field.TYPE_FLOAT, None),
            ("type", 3, field.TYPE_INT32, None),
        ],
        "Normalizer": [
            ("name", 1, field.TYPE_STRING, None),
            ("normalization_rule_tsv", 6, field.TYPE_STRING, None),
        ],
        "Model": [
            ("pieces", 1, field.TYPE_MESSAGE, "Piece"),
            ("normalizer_spec", 3, field.TYPE_MESSAGE, "Normalizer"),
        ],
    }
    file = descriptor_pb2.FileDescriptorProto(name="model.proto", syntax="proto2")
    for message_name, fields in messages.items():
        message = file.message_type.add(name=message_name)
        for name, number, kind, type_name in fields:
            label = field.LABEL_REPEATED if name == "pieces" else field.LABEL_OPTIONAL
            message.field.add(name=name, number=number, type=kind, label=label, type_name=type_name)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Model"))


_MODEL = _model_message()


class _Feed:
    """Hands sentences to SentencePiece, and keeps the error that stops them.

    SentencePiece turns an exception of its iterator into an error about its own insides.
    """

    def __init__(self, texts):
        self.texts = texts
        self.error = None

    def __iter__(self):
        characters = 0
        try:
            for text in self.texts:
                characters += len(text)
                yield from _cut_to_size(_NOT_FOR_TRAINING.sub(" ", text))
            # It keeps the interpreter to itself from here on: nothing can be said meanwhile.
            seconds = 2 + characters / 500_000
            logger.info(
                "training on %.1f million characters, about %.0f s", characters / 1e6, seconds
            )
        except BaseException as error:
            self.error = error
            raise


def _cut_to_size(text):
    """Cuts a text at white space, or inside an endless word, into what SentencePiece takes."""
    longest = _MAX_SENTENCE_BYTES // 4  # in characters: UTF-8 needs at most four bytes for one
    start = 0
    while len(text) - start > longest:
        if len(text[start : start + _MAX_SENTENCE_BYTES + 1].encode()) <= _MAX_SENTENCE_BYTES:
            break  # the rest fits
        spaces = [match.start() for match in _SPACE.finditer(text, start + 1, start + longest)]
        end = spaces[-1] if spaces else start + longest
        yield text[start:end]
        start = end
    yield text[start:]


def _train(feed, rules, **options):
    model = io.BytesIO()
    sentences = iter(feed)
    # SentencePiece up to 0.2.1 ends the whole process where there is nothing to count.
    first = next((text for text in sentences if set(apply_rules(rules, text)) - _UNCOUNTED), None)
    if first is None:
        raise InputError("The corpus should hold some words. Received: none. Check its path.")
    with tempfile.TemporaryDirectory() as folder:
        rule_file = Path(folder) / "rules.tsv"
        rule_file.write_text(rules_tsv(rules), encoding="utf-8")
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=itertools.chain([first], sentences),
                model_writer=model,
                model_type="unigram",
                normalization_rule_tsv=str(rule_file),
                max_sentence_length=_MAX_SENTENCE_BYTES,
                shuffle_input_sentence=True,
                pad_id=0,
                unk_id=1,
                bos_id=-1,
                eos_id=-1,
                control_symbols=list(CONTROL_SYMBOLS),
                user_defined_symbols=list(USER_DEFINED_SYMBOLS),
                num_threads=_NUM_THREADS,
                minloglevel=2,
                **options,
            )
        except (RuntimeError, SystemError) as error:
            raise (feed.error or _explain(str(error), options["vocab_size"])) from error
    trained = read_model(model.getvalue())
    trained.normalizer_spec.ClearField("normalization_rule_tsv")  # a path of this machine
    return trained.SerializeToString(deterministic=True)


def _explain(message, size):
    """Turns what SentencePiece says about a corpus into our words."""
    if found := re.search(r"too high.*value <= (\d+)", message):
        limit, advice = f"at most {found[1]}", "Lower it or give more text"
    elif found := re.search(r"smaller than required_chars\. \d+ vs (\d+)", message):
        limit, advice = f"at least {found[1]}", "Raise it or lower `character_coverage`"
    else:
        return InputError(f"SentencePiece could not train on this corpus: {message}")
    return InputError(f"`size` should be {limit} for this corpus. Received: {size}. {advice}.")
