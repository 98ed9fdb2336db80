"""The task of a converted model: between its head and keys of others, and a fine-tuned run."""

import dataclasses
import logging
from pathlib import Path
from typing import Any

from albert_keras.formats.opened_model import OpenedModel
from albert_keras.hub import shared_name
from albert_keras.runs.run import Run
from albert_keras.runs.run_record import CONVERTED
from albert_keras.tasks.example_source import ExampleSource
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer

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
#: Above this difference of scores there is no answer, as long as nothing better was tuned.
_NULL_THRESHOLD = {"null_threshold": 0.0}

logger = logging.getLogger(__name__)


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
    if opened.task.get("pooling") == "mean" and opened.task["name"] != "similarity":
        raise InputError(
            f"`{opened.path}` must be a run whose head reads the pooled output. Received: a head "
            "on the mean over the tokens, which other formats do not have. Fine-tune with "
            "`task.pooling=pooler`."
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
) -> TaskConfig | None:
    """Returns the task of a converted model, with labels and the usual names of columns.

    The class of transformers and `problem_type`, which are among the `foreign_keys` of the shape
    if they are not the usual ones, distinguish the tasks that share a head. `takes_pair` is whether
    a classifier was trained on pairs of texts, which no format records.

    Returns:
        TaskConfig, or None if the model has no head of a task or, with a warning, if it cannot
        answer.

    Raises:
        InputError: If `takes_pair` does not suit the head.
    """
    settings = _settings(model, takes_pair)
    task = build_task(TaskConfig(**settings)) if settings else None
    if takes_pair and not (task and task.compares_pairs):
        heads = ", ".join(model.heads) or "none"
        raise InputError(
            "`pair` requires a model that sorts texts into classes or predicts a number for "
            f"them. Received: heads {heads}."
        )
    if task is None:
        return None
    if tokenizer is None:
        logger.warning("the model cannot answer without a vocabulary: pass one as `tokenizer`")
        return None
    config = task.config
    if task.kind == "tagging":  # other programs set punctuation apart, in training and in answering
        config = config.replace(word_split="punctuation")
    length = min(task.usual_length, model.albert_config.max_position_embeddings)
    return config.replace(max_seq_length=length)


def _settings(model, takes_pair):
    """Returns the settings of a TaskConfig (dict), or None if there is no task."""
    heads = set(model.heads)
    for kind, name in (("spans_or_none", "squad2"), ("spans", "squad1")):
        if kind in heads:
            return {"name": name}
    if _CLASSIFIER not in heads:
        return None
    foreign = model.albert_config.foreign_keys
    classes = foreign.get("architectures")
    class_name = str(classes[0]) if isinstance(classes, list) and classes else ""
    if class_name.endswith("ForMultipleChoice"):
        return {"name": "race"}
    (count,) = model.tensors.shapes["output_bias"]
    labels = {"labels": model.labels or tuple(f"LABEL_{number}" for number in range(count))}
    if class_name.endswith("ForTokenClassification"):
        return {"name": "tagging"} | labels
    columns = {"text": "text", "pair": "pair" if takes_pair else None, "label": "label"}
    problem = foreign.get("problem_type") or (_REGRESSION if count == 1 else _ONE_CLASS)
    if problem == _REGRESSION:
        several = {"label": labels["labels"]} if count > 1 else {}
        return {"name": "regression"} | columns | several
    name = {"name": "pair" if takes_pair else "classification"}
    if problem == _SEVERAL_LABELS:
        return name | columns | labels | {"label_separator": "|"}
    if problem == _ONE_CLASS and count > 1:
        return name | columns | labels
    logger.warning(
        "the classifier cannot answer: no task here has `problem_type` %s with %s outputs",
        problem,
        count,
    )
    return None


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
    built = build_task(task)
    thresholds = _NULL_THRESHOLD if built.kind == "spans_or_none" else None
    run.save_model(built.build_model(model.albert_config, tokenizer, thresholds, dtype="float32"))
