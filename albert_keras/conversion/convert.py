"""A model from one format into another: weights, shape, vocabulary, and a check of the result."""

import logging
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from albert_keras.conversion.task_run import complete, task_of_head, write_task_run
from albert_keras.formats.detection import CONVERSION_RECORD, FORMATS, OURS, Place, detect
from albert_keras.formats.open_weights import format_module, open_weights
from albert_keras.formats.opened_model import EMBEDDING
from albert_keras.formats.vocabulary_writing import files_for, write_files
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_folder, write_json
from data_pipeline.limits import with_digest

_HUGGING_FACE = "hugging-face"

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
    labels: tuple[str, ...]  #: Names of classes, if the source has them.
    #: The task of the fine-tuned run that was written; None for any other folder.
    task: str | None
    #: "pooling" and "longest_text" of a model for vectors of texts.
    embedding: dict[str, Any]
    #: "pieces", their number, and "digest"; None without a vocabulary.
    vocabulary: dict[str, Any] | None


def convert(
    source: str | Path | Place,
    target: str | Path,
    to: str | None = None,
    tokenizer: str | Path | None = None,
    albert_config: str | Path | None = None,
    pair: bool = False,
) -> ConversionResult:
    """Converts a model, for example from google-research/albert or Hugging Face, or back.

    What was written is read again: its tensors must have the same bits as those of the source.

    Args:
        source: str or Path. Run, export, name of a shipped model or of one of the hub
            (`hf://OWNER/NAME`), checkpoint, folder or file.
        target: str or Path. The folder to create. It is created completely or not at all, and
            nothing is overwritten.
        to: str or None. One of `FORMATS`; None is "albert-keras".
        tokenizer: str, Path or None. Folder or file of the vocabulary; None takes the one stored
            beside the weights.
        albert_config: str, Path or None. `albert_config.json` of a checkpoint without one.
        pair: bool. Whether a classifier or a regression was trained on pairs of texts, for a target
            in our format.

    Returns:
        ConversionResult.

    Raises:
        InputError: If the source has an unknown format, is damaged or hostile, if the
            target exists or cannot express the model, or if the vocabulary does not match. Nothing
            is written then.

    Example:
        convert("albert_base_v2", "albert-base-v2", to="hugging-face")
    """
    target = Path(target)
    check_output_folder(target, "target")
    place = detect(source)
    if to not in (None, *FORMATS):
        raise InputError(f"The format must be one of {', '.join(FORMATS)}. Received: {to}.")
    with whole_folder(target) as folder:  # from now on other processes are refused
        if to is None and place.format == OURS:
            names = ", ".join(name for name in FORMATS if name != OURS)
            raise InputError(
                f"The model is in our format. Choose a target with `to` one of: {names}."
            )
        logger.info("reading `%s` (%s)", source, place.format)
        opened = open_weights(place, None, albert_config, tokenizer)
        to = to or OURS
        model = complete(opened)
        if opened.has_tokenizer and to == _HUGGING_FACE:  # positions start after the id of padding
            model = model.with_padding_at(opened.tokenizer.pad_id)
        files, vocabulary, task = {}, None, None
        if opened.has_tokenizer:
            pieces, shape = opened.tokenizer, model.albert_config
            has_segments = shape.type_vocab_size > 1
            files = files_for(pieces, to, shape.max_position_embeddings, has_segments)
            vocabulary = {"pieces": pieces.vocab_size, "digest": pieces.digest}
        else:
            logger.warning("`%s` has no vocabulary: pass one as `tokenizer`", source)
        if to == OURS != place.format:
            task = task_of_head(model, opened.tokenizer if files else None, pair)
        elif pair:
            raise InputError("`pair` requires a target in our format, and a source in another one.")
        logger.info("writing `%s` (%s)", target, to)
        if task is not None:
            write_task_run(model, opened.tokenizer, task, folder)
        else:
            format_module(to).write(model, folder)
            write_files(folder, files)
        write_json(folder / CONVERSION_RECORD, {"format": to})  # to read it; completed below
        written = open_weights(folder).in_memory()
        _check_equal(written.arrays, model.arrays)
        result = ConversionResult(
            path=target,
            source=str(place),
            source_format=place.format,
            format=to,
            albert_config=model.albert_config.to_dict(),
            num_parameters=sum(array.size for array in written.arrays.values()),
            encoder_digest=written.digest,
            heads=written.heads,
            left_heads=tuple(head for head in model.heads if head not in written.heads),
            labels=tuple(model.labels),
            task=None if task is None else task.name,
            embedding={name: getattr(model, name) for name in EMBEDDING} if to == OURS else {},
            vocabulary=vocabulary,
        )
        record = result._asdict()
        record.pop("path")
        write_json(folder / CONVERSION_RECORD, with_digest(record), ensure_ascii=False)
    return result


def _check_equal(written: dict[str, np.ndarray], tensors: dict[str, np.ndarray]):
    """Raises InputError if a tensor that was written has other bits than in the source."""
    different = [
        name
        for name, array in written.items()
        if name not in tensors or array.tobytes() != tensors[name].tobytes()
    ]
    if different:
        raise InputError(
            "The target must contain the same numbers as its source. These tensors differ: "
            f"{', '.join(different)}. Nothing was written."
        )
