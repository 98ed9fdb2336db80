"""A model from one format into another: weights, shape, vocabulary, and a check of the result."""

import dataclasses
import logging
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from albert_keras.formats.detection import CONVERSION_RECORD, FORMATS, OURS, Place, detect
from albert_keras.formats.open_weights import format_module, open_weights
from albert_keras.formats.opened_model import EMBEDDING, OpenedModel
from albert_keras.formats.vocabulary import Vocabulary
from albert_keras.formats.vocabulary_writing import files_for
from albert_keras.hub import shared_name
from albert_keras.runs.run import Run
from albert_keras.runs.run_record import CONVERTED
from albert_keras.tasks.example_source import ExampleSource
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.finetuned import save_tuned
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_folder, write_json
from data_pipeline.limits import with_digest
from data_pipeline.tokenizers.tokenization import Tokenizer

_HUGGING_FACE = "hugging-face"
#: Values of `problem_type` in transformers.
_REGRESSION, _ONE_CLASS = "regression", "single_label_classification"
_SEVERAL_LABELS = "multi_label_classification"
#: Kind -> keys of config.json that distinguish it in transformers from kinds with the same head.
#: The class is the same as for ALBERT, even for a BERT.
FOREIGN_KEYS: dict[str, dict[str, Any]] = {
    "multi_label": {"problem_type": _SEVERAL_LABELS},
    "multi_regression": {"problem_type": _REGRESSION},
    "tagging": {"architectures": ["AlbertForTokenClassification"]},
    "choice": {"architectures": ["AlbertForMultipleChoice"]},
}
_CLASSIFIER = "classifier"
#: Share of the pieces that are a Chinese character, above which a vocabulary consists of these:
#: 0.35 of bert-base-chinese, 0.13 of multilingual BERT.
_SHARE_OF_CHARACTERS = 0.2
#: Above this difference of scores there is no answer, as long as nothing better was tuned.
_NULL_THRESHOLD = {"null_threshold": 0.0}

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
    weights_digest: str  #: The same of all weights, also those of heads.
    heads: tuple[str, ...]  #: Names in `HEADS` that were converted.
    left_heads: tuple[str, ...]  #: Heads that the target cannot store.
    labels: tuple[str, ...]  #: Names of classes, if the source has them.
    #: The task of the fine-tuned run that was written; None for any other folder.
    task: str | None
    #: "pooling", "normalize" and "longest_text" of a model for vectors of texts.
    embedding: dict[str, Any]
    #: "pieces", their number, "source", "digest" and, as it is read from the folder,
    #: "written_digest"; None without a vocabulary.
    vocabulary: dict[str, Any] | None
    notes: tuple[str, ...]  #: What other code does differently with the model.


def convert(
    source: str | Path | Place,
    target: str | Path,
    to: str | None = None,
    tokenizer: str | Path | None = None,
    config: str | Path | None = None,
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
        config: str, Path or None. `albert_config.json` of a checkpoint without one.
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
    source_format = place.format
    if to not in (None, *FORMATS):
        raise InputError(f"The format must be one of {', '.join(FORMATS)}. Received: {to}.")
    with whole_folder(target) as folder:  # from now on other processes are refused
        try:
            if to is None and source_format == OURS:
                if place.kind in ("export", "keras"):  # perhaps of another program
                    open_weights(place)
                names = ", ".join(name for name in FORMATS if name != OURS)
                message = f"The model is in our format. Choose a target with `to` one of: {names}."
                raise InputError(message)
            logger.info("reading `%s` (%s)", source, source_format)
            opened = open_weights(place, None, config, tokenizer)
        except InputError as error:  # the argument has another name here
            text = str(error).replace("`albert_config`", "`config`")
            raise InputError(text, *error.mistakes) from error
        to = to or OURS
        model = complete(opened)
        files, notes, described = {}, list(opened.notes), None
        if opened.has_tokenizer and to == _HUGGING_FACE:  # positions start after the id of padding
            model = model.with_padding_at(opened.tokenizer.pad_id)
        shape = model.albert_config
        if opened.has_tokenizer:
            vocabulary = Vocabulary(opened.tokenizer, opened.tokenizer_source)
            files = files_for(
                vocabulary, to, shape.max_position_embeddings, shape.type_vocab_size > 1
            )
            if to == _HUGGING_FACE and getattr(opened.tokenizer.config, "program", "") == "google":
                notes.append(
                    "transformers reads words of more than 100 characters as unknown (here: 200), "
                    "deletes private characters, and writes a Greek Σ at the end of a word as σ"
                )
            described = {
                "pieces": opened.tokenizer.vocab_size,
                "source": vocabulary.source,
                "digest": opened.tokenizer.digest,
            }
        else:
            logger.warning("`%s` has no vocabulary: pass one as `tokenizer`", source)
        if to != OURS and shape.attention != "dense":
            notes.append(
                "other programs compute dense attention with these weights: outputs differ for "
                f"texts of more than {shape.key_blocks * shape.attention_block_size} tokens"
            )
        task = None
        if to == OURS != source_format:
            task, reason = task_of_head(model, opened.tokenizer if files else None, pair)
            if reason:
                notes.append(reason)
        elif pair:
            raise InputError("`pair` requires a target in our format, and a source in another one.")
        logger.info("writing `%s` (%s)", target, to)
        if task is not None:
            write_task_run(model, opened.tokenizer, task, folder)
        else:
            format_module(to).write(model, folder, files)
        write_json(folder / CONVERSION_RECORD, {"format": to})  # to read it; completed below
        written = open_weights(folder).in_memory()
        if described is not None:
            described["written_digest"] = written.tokenizer.digest
        _check_equal(written.arrays, model.arrays)
        result = ConversionResult(
            path=target,
            source=str(place),
            source_format=source_format,
            format=to,
            albert_config=shape.to_dict(),
            num_parameters=sum(array.size for array in written.arrays.values()),
            encoder_digest=written.digest,
            weights_digest=written.weights_digest,
            heads=written.heads,
            left_heads=tuple(head for head in model.heads if head not in written.heads),
            labels=tuple(model.labels),
            task=None if task is None else task.name,
            embedding={name: getattr(model, name) for name in EMBEDDING} if to == OURS else {},
            vocabulary=described,
            notes=tuple(dict.fromkeys(notes)),
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


def complete(opened: OpenedModel) -> OpenedModel:
    """Reads a model, and returns it with the labels and keys by which others know its task.

    InputError for a head that other formats do not have.
    """
    if opened.task is None:
        return opened.in_memory()
    if opened.run is not None and opened.run.record["config"]["model"].get("freeze_encoder"):
        raise InputError(
            f"`{opened.path}` must be a run whose encoder was fine-tuned. Received: a head on "
            "layers of a frozen encoder, which other formats do not have. Convert the model "
            "that it was started from; its encoder has the same weights."
        )
    if opened.task.get("pair_encoding") == "separate":
        raise InputError(
            f"`{opened.path}` must be a run that encodes pairs as one sequence. Received: a head "
            "that compares two texts, which other formats do not have. Fine-tune with "
            "`pair_encoding=joint`."
        )
    model, task = opened.in_memory(), build_task(TaskConfig(**opened.task))
    if task.kind in ("multi_label", "spans_or_none") or task.config.threshold is not None:
        logger.warning(
            "other formats have no thresholds: those of `%s` apply to its own answers and exports "
            "only",
            opened.path,
        )
    keys = model.albert_config.foreign_keys | FOREIGN_KEYS.get(task.kind, {})
    shape = model.albert_config.replace(foreign_keys=keys)
    return dataclasses.replace(model, albert_config=shape, labels=tuple(task.labels))


def task_of_head(
    model: OpenedModel, tokenizer: Tokenizer | None, takes_pair: bool = False
) -> tuple[TaskConfig | None, str]:
    """Returns the task of a converted model, with labels and the usual names of columns.

    The class of transformers and `problem_type`, which are among the `foreign_keys` of the shape
    if they are not the usual ones, distinguish the tasks that share a head. `takes_pair` is whether
    a classifier was trained on pairs of texts, which no format records.

    Returns:
        TaskConfig, or None if the model has no head of a task or cannot answer; and why it cannot,
        a sentence without a period.

    Raises:
        InputError: If `takes_pair` does not suit the head.
    """
    settings, reason = _settings(model, takes_pair)
    task = build_task(TaskConfig(**settings)) if settings else None
    if takes_pair and not (task and task.compares_pairs):
        heads = ", ".join(model.heads) or "none"
        raise InputError(
            "`pair` requires a model that sorts texts into classes or predicts a number for "
            f"them. Received: heads {heads}."
        )
    if task is None:
        return None, reason
    if tokenizer is None:
        return None, "the model cannot answer without a vocabulary: pass one as `tokenizer`"
    config = task.config
    if task.kind == "tagging":  # other programs set punctuation apart, in training and in answering
        split = "characters" if _has_characters(tokenizer) else "punctuation"
        config = config.replace(word_split=split)
    length = min(task.usual_length, model.albert_config.max_position_embeddings)
    return config.replace(max_seq_length=length), ""


def _has_characters(tokenizer):
    """Returns whether a vocabulary consists of Chinese characters, each of which is tagged."""
    pieces = [tokenizer.piece_of(id) for id in range(tokenizer.vocab_size)]
    is_character = [len(piece) == 1 and "\u4e00" <= piece <= "\u9fff" for piece in pieces]
    return sum(is_character) > _SHARE_OF_CHARACTERS * len(pieces)


def _settings(model, takes_pair):
    """Returns the settings of a TaskConfig (dict), or None and why there is no task."""
    heads = set(model.heads)
    for kind, name in (("spans_or_none", "squad2"), ("spans", "squad1")):
        if kind in heads:
            return {"name": name}, ""
    if _CLASSIFIER not in heads:
        return None, ""
    foreign = model.albert_config.foreign_keys
    classes = foreign.get("architectures")
    class_name = str(classes[0]) if isinstance(classes, list) and classes else ""
    if class_name.endswith("ForMultipleChoice"):
        return {"name": "race"}, ""
    (count,) = model.tensors.shapes["output_bias"]
    labels = {"labels": model.labels or tuple(f"LABEL_{number}" for number in range(count))}
    if len(set(model.labels)) < len(model.labels):
        return None, "the classifier cannot answer: several of its labels have the same name"
    if class_name.endswith("ForTokenClassification"):
        return {"name": "tagging"} | labels, ""
    columns = {"text": "text", "pair": "pair" if takes_pair else None, "label": "label"}
    problem = foreign.get("problem_type") or (_REGRESSION if count == 1 else _ONE_CLASS)
    if problem == _REGRESSION:
        several = {"label": labels["labels"]} if count > 1 else {}
        return {"name": "regression"} | columns | several, ""
    name = {"name": "pair" if takes_pair else "classification"}
    if problem == _SEVERAL_LABELS:
        return name | columns | labels | {"label_separator": "|"}, ""
    if problem == _ONE_CLASS and count > 1:
        return name | columns | labels, ""
    return None, (
        f"the classifier cannot answer: no task here has `problem_type` {problem} with {count} "
        "outputs"
    )


class _NoExamples(ExampleSource):
    """What a run records about its data: here only where the weights come from."""

    def __init__(self, tokenizer: Tokenizer, description: dict[str, Any]):
        self.tokenizer, self.description = tokenizer, description

    def describe(self):
        return self.description


def write_task_run(model: OpenedModel, tokenizer: Tokenizer, task: TaskConfig, folder: Path):
    """Writes a fine-tuned run of a task with one checkpoint, of step 0, into an empty folder.

    The tensors have the reference's names; `task` is the result of `task_of_head`.
    """
    config = FinetuneConfig(task=task, training={"precision": "float32"})
    description = {
        "origin": shared_name(model.path),
        "origin_digest": model.digest,
        "origin_positions": model.albert_config.max_position_embeddings,
        "fingerprint": CONVERTED,
        "max_seq_length": task.max_seq_length,
    }
    run = Run.prepare(folder, config, model.albert_config, _NoExamples(tokenizer, description))
    run.write()
    # It has a score, so that this only checkpoint is also the best one.
    run.checkpoints.save(0, model.arrays, score=0.0)
    if build_task(task).kind == "spans_or_none":
        save_tuned(run, _NULL_THRESHOLD)
