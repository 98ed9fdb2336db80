"""A model from one format into another: weights, shape, vocabulary, and a check of the result."""

import json
import logging
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from albert_keras.conversion import conversion_card, own
from albert_keras.conversion.formats import FORMATS, detect_format, load_format, read_format
from albert_keras.conversion.source_files import files_of
from albert_keras.conversion.verify import verify as verify_conversion
from albert_keras.conversion.vocabulary_files import check_size, read_vocabulary, vocabulary_of
from albert_keras.conversion.vocabulary_identity import check_identity
from albert_keras.conversion.vocabulary_writing import files_for, notes_for
from albert_keras.weights.source_tensors import encoder_digest
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_folder

logger = logging.getLogger(__name__)


class ConversionResult(NamedTuple):
    """What a conversion made; `conversion.json` in the folder holds the same but `path`.

    Attributes:
        path: Path. The folder.
        source, source_format: str. What was read.
        format: str. What was written.
        albert_config: dict. Shape of the model.
        num_parameters: int. Numbers in all tensors that were written.
        encoder_digest: str. SHA-256 of the encoder's weights, see `encoder_digest`.
        heads: tuple of str. Of `HEADS`, those that came along.
        left_heads: tuple of str. Those that the target has no place for.
        absent_heads: tuple of str. Heads of a pre-trained model that the source does not have.
        labels: tuple of str. Names of classes, where the source tells.
        vocabulary: dict or None. "name" and "sentence" of its identity, its "source" and its
            "digest"; None if none came along.
        notes: tuple of str. What other code does otherwise with it.
        verification: dict or None. As of `Verification`; None if it was not wanted.
        source_files: dict of str. File of the source -> SHA-256, in hexadecimal.
    """

    path: Path
    source: str
    source_format: str
    format: str
    albert_config: dict[str, Any]
    num_parameters: int
    encoder_digest: str
    heads: tuple[str, ...]
    left_heads: tuple[str, ...]
    absent_heads: tuple[str, ...]
    labels: tuple[str, ...]
    vocabulary: dict[str, str] | None
    notes: tuple[str, ...]
    verification: dict[str, Any] | None
    source_files: dict[str, str]


def convert(
    source,
    target,
    to=None,
    source_format=None,
    tokenizer=None,
    config=None,
    verify=True,
    trust_pickle=False,
) -> ConversionResult:
    """Converts a model, for example of google-research/albert or Hugging Face into ours, or back.

    Args:
        source: str or Path. Run, export, checkpoint, folder or file.
        target: str or Path. The folder to make. It appears whole or not at all, and nothing is
            overwritten.
        to: str or None. One of `FORMATS`; None is ours, which a model of ours has already.
        source_format: str or None. One of `FORMATS`; None looks at the names of files.
        tokenizer: str, Path or None. Folder or file of the vocabulary; None takes the one that
            comes along.
        config: str, Path or None. `albert_config.json` of a checkpoint that comes without.
        verify: bool. Whether source and target are run on the same inputs, and their tensors
            compared.
        trust_pickle: bool. Whether a `pytorch_model.bin` may be opened; it can run any program.

    Returns:
        ConversionResult.

    Raises:
        InputError: If the source is of no or of another format, damaged or hostile, if the target
            exists or cannot have such a model, if the vocabulary does not fit, or if the outputs
            differ. Nothing is written then.

    Example:
        convert("albert_base_v2", "albert-base-v2", to="hugging-face")
    """
    source, target = Path(source), Path(target)
    check_output_folder(target, "TARGET")
    source_format = source_format or detect_format(source)
    to = to or _usual_target(source_format)
    writer = load_format(to)
    logger.info("reading `%s` (%s)", source, source_format)
    weights = read_format(source_format, source, trust_pickle, config)
    vocabulary = _vocabulary(weights, tokenizer, source_format, to)
    files, notes = {}, []
    if vocabulary is not None:
        files = files_for(vocabulary, to, weights.config.max_position_embeddings)
        notes = [*vocabulary.notes, *notes_for(vocabulary, to)]
    with whole_folder(target) as folder:
        logger.info("writing `%s` (%s)", target, to)
        writer.write(weights._replace(tokenizer_files=files), folder)
        _mark(folder, to)
        written = writer.read(folder)
        verification = None
        if verify:
            logger.info("comparing outputs")
            paths = (source, folder)
            verification = verify_conversion(weights, written, source_format, to, paths)
        result = ConversionResult(
            path=target,
            source=str(source),
            source_format=source_format,
            format=to,
            albert_config=weights.config.to_dict(),
            num_parameters=sum(array.size for array in written.tensors.values()),
            encoder_digest=encoder_digest(_Tensors(written.tensors)),
            heads=written.heads,
            left_heads=tuple(head for head in weights.heads if head not in written.heads),
            absent_heads=_absent(weights.heads),
            labels=tuple(weights.labels),
            vocabulary=_describe(vocabulary),
            notes=tuple(dict.fromkeys(notes)),
            verification=verification and verification._asdict(),
            source_files=files_of(source),
        )
        record = result._asdict()
        record.pop("path")
        conversion_card.write_card(folder, record)
    return result


def _usual_target(source_format):
    if source_format == own.NAME:
        names = ", ".join(name for name in FORMATS if name != own.NAME)
        raise InputError(f"A model of ours should be converted --to one of: {names}.")
    return own.NAME


def _vocabulary(weights, given, source_format, to):
    """Returns the Vocabulary that belongs to weights; None if none came along."""
    if given is not None:
        vocabulary = read_vocabulary(given)
    else:
        vocabulary = vocabulary_of(weights.tokenizer_files, weights.source)
    if vocabulary is None:
        logger.warning("`%s` comes without a vocabulary: give one with --tokenizer", weights.source)
        return None
    check_size(vocabulary, weights.config)
    check_identity(vocabulary.identity, weights.config, source_format, given is not None)
    return vocabulary


def _mark(folder, to):
    """Says whose format a folder is while it is not finished: the record comes last."""
    text = json.dumps({"format": to}) + "\n"
    (folder / own.RECORD).write_text(text, encoding="utf-8")


def _absent(heads):
    """Tells which heads of pre-training are missing; a fine-tuned model has none, rightly."""
    pretraining = ("masked_lm", "sentence_order")
    if any(head not in pretraining for head in heads):
        return ()
    return tuple(head for head in pretraining if head not in heads)


def _describe(vocabulary):
    if vocabulary is None:
        return None
    found = {"source": vocabulary.source, "digest": vocabulary.tokenizer.digest}
    return vocabulary.identity._asdict() | found


class _Tensors:
    """Arrays in the place of a checkpoint's tensors, for `encoder_digest`."""

    def __init__(self, tensors):
        self._tensors = tensors
        self.shapes = {name: list(array.shape) for name, array in tensors.items()}
        self.types = {name: tf.as_dtype(array.dtype) for name, array in tensors.items()}

    def read(self, name):
        return np.asarray(self._tensors[name])
