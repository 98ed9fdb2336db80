"""A model from one format into another: weights, shape, vocabulary, and a check of the result."""

import logging
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.conversion import conversion_card, own
from albert_keras.conversion.formats import FORMATS, detect_format, load_format, read_format
from albert_keras.conversion.task_run import task_of_head
from albert_keras.conversion.verify import verify as verify_conversion
from albert_keras.formats.foreign_weights import ArrayTensors
from albert_keras.formats.loading import encoder_digest
from albert_keras.formats.model_folder import write_json
from albert_keras.formats.model_weights import with_padding_at
from albert_keras.formats.vocabulary import (
    Vocabulary,
    check_identity,
    check_size,
    files_for,
    notes_for,
    read_vocabulary,
    vocabulary_of,
)
from albert_keras.shipped_models import find_model
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_folder

_HUGGING_FACE = "hugging-face"
_PRETRAINING = ("masked_lm", "sentence_order")

logger = logging.getLogger(__name__)


class ConversionResult(NamedTuple):
    """The result of a conversion; `conversion.json` in the folder has its keys except `path`."""

    path: Path  #: The folder.
    source: str  #: What was read.
    source_format: str
    format: str  #: What was written.
    albert_config: dict[str, Any]  #: Shape of the model.
    num_parameters: int  #: Numbers in all tensors that were written.
    encoder_digest: str  #: SHA-256 of the encoder's weights, see `encoder_digest`.
    heads: tuple[str, ...]  #: Names in `HEADS` that were converted.
    left_heads: tuple[str, ...]  #: Heads that the target cannot store.
    absent_heads: tuple[str, ...]  #: Heads of a pre-trained model that the source does not have.
    labels: tuple[str, ...]  #: Names of classes, if the source has them.
    #: The task of the fine-tuned run that was written; None for any other folder.
    task: str | None
    #: "name" and "sentence" of its identity, its "source" and its "digest"; None without one.
    vocabulary: dict[str, str] | None
    notes: tuple[str, ...]  #: What other code does differently with the model.
    verification: dict[str, Any] | None  #: The fields of `Verification`, if it was requested.
    source_files: dict[str, str]  #: File of the source -> SHA-256, in hexadecimal.


def convert(
    source: str | Path,
    target: str | Path,
    to: str | None = None,
    source_format: str | None = None,
    tokenizer: str | Path | None = None,
    config: str | Path | None = None,
    verify: bool = True,
    trust_pickle: bool = False,
    pair: bool = False,
) -> ConversionResult:
    """Converts a model, for example from google-research/albert or Hugging Face, or back.

    Args:
        source: str or Path. Run, export, name of a shipped model, checkpoint, folder or file.
        target: str or Path. The folder to create. It is created completely or not at all, and
            nothing is overwritten.
        to: str or None. One of `FORMATS`; None is "albert-keras".
        source_format: str or None. One of `FORMATS`; None recognizes it by the names of files.
        tokenizer: str, Path or None. Folder or file of the vocabulary; None takes the one stored
            beside the weights.
        config: str, Path or None. `albert_config.json` of a checkpoint without one.
        verify: bool. Whether to run source and target on the same inputs, and to compare their
            tensors.
        trust_pickle: bool. Whether a `pytorch_model.bin` or `model.pt` may be read; either can run
            any program.
        pair: bool. Whether a classifier or a regression was trained on pairs of texts, for a target
            in our format.

    Returns:
        ConversionResult.

    Raises:
        InputError: If the source has an unknown or another format, is damaged or hostile, if the
            target exists or cannot express the model, if the vocabulary does not match, or if the
            outputs differ. Nothing is written then.

    Example:
        convert("albert_base_v2", "albert-base-v2", to="hugging-face")
    """
    source, target = find_model(source), Path(target)
    check_output_folder(target, "TARGET")
    source_format = source_format or detect_format(source)
    if to is None and source_format == own.NAME:
        names = ", ".join(name for name in FORMATS if name != own.NAME)
        raise InputError(f"The model is in our format. Choose a target with --to one of: {names}.")
    to = to or own.NAME
    writer = load_format(to)
    logger.info("reading `%s` (%s)", source, source_format)
    weights = read_format(source_format, source, trust_pickle, config)
    vocabulary = _vocabulary(weights, tokenizer, source_format)
    files, notes, described = {}, [], None
    if vocabulary is not None:
        if to == _HUGGING_FACE:  # where positions start after the id of padding
            weights = with_padding_at(weights, vocabulary.tokenizer.pad_id)
        shape = weights.config
        files = files_for(vocabulary, to, shape.max_position_embeddings, shape.type_vocab_size > 1)
        notes = [*vocabulary.notes, *notes_for(vocabulary, to)]
        described = vocabulary.identity._asdict()
        described |= {"source": vocabulary.source, "digest": vocabulary.tokenizer.digest}
    if to != own.NAME and weights.config.attention != "dense":
        notes.append(
            "other programs compute dense attention with these weights: outputs differ for texts "
            f"of more than {weights.config.key_blocks * weights.config.attention_block_size} tokens"
        )
    task, options = None, {}
    if to == own.NAME and source_format != own.NAME:
        task, reason = task_of_head(weights, vocabulary and vocabulary.tokenizer, pair)
        if task is not None:
            options = {"task": task}
        elif reason:
            notes.append(reason)
    elif pair:
        raise InputError("`--pair` requires a target in our format, and a source in another one.")
    # A fine-tuned model is not expected to have any head of pre-training.
    expected = () if set(weights.heads) - set(_PRETRAINING) else _PRETRAINING
    with whole_folder(target) as folder:
        logger.info("writing `%s` (%s)", target, to)
        writer.write(weights._replace(tokenizer_files=files), folder, **options)
        write_json(folder / own.RECORD, {"format": to})  # `read` needs it; completed below
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
            encoder_digest=encoder_digest(ArrayTensors(written.tensors)),
            heads=written.heads,
            left_heads=tuple(head for head in weights.heads if head not in written.heads),
            absent_heads=tuple(head for head in expected if head not in weights.heads),
            labels=tuple(weights.labels),
            task=None if task is None else task.name,
            vocabulary=described,
            notes=tuple(dict.fromkeys(notes)),
            verification=verification and verification._asdict(),
            source_files=own.source_files(source),
        )
        record = result._asdict()
        record.pop("path")
        conversion_card.write_card(folder, record)
    return result


def _vocabulary(weights, given, source_format) -> Vocabulary | None:
    files = weights.tokenizer_files
    vocabulary = vocabulary_of(files, weights.source) if given is None else read_vocabulary(given)
    if vocabulary is None:
        logger.warning("`%s` has no vocabulary: pass one with --tokenizer", weights.source)
        return None
    check_size(vocabulary, weights.config)
    check_identity(vocabulary.identity, weights.config, source_format, given is not None)
    return vocabulary
