"""A converted model with the head of a task, as the folder of a fine-tuned run."""

from pathlib import Path
from typing import Any

from albert_keras.formats.loading import ArrayTensors, encoder_digest
from albert_keras.formats.model_weights import ModelWeights
from albert_keras.runs.run import Run
from albert_keras.runs.run_record import CONVERTED
from albert_keras.tasks.example_source import ExampleSource
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.finetuned import save_tuned
from albert_keras.tasks.kinds import (
    CHOICE,
    CLASSIFICATION,
    MULTI_LABEL,
    MULTI_REGRESSION,
    REGRESSION,
    SPANS,
    SPANS_OR_NONE,
    TAGGING,
    build_task,
)
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Values of `problem_type` in transformers.
_REGRESSION, _ONE_CLASS = "regression", "single_label_classification"
_SEVERAL_LABELS = "multi_label_classification"
#: Kind -> keys of config.json that distinguish it in transformers from kinds with the same head.
#: The class is the same as for ALBERT, even for a BERT.
FOREIGN_KEYS = {
    MULTI_LABEL: {"problem_type": _SEVERAL_LABELS},
    MULTI_REGRESSION: {"problem_type": _REGRESSION},
    TAGGING: {"architectures": ["AlbertForTokenClassification"]},
    CHOICE: {"architectures": ["AlbertForMultipleChoice"]},
}
_CLASSIFIER = "classifier"
_OF_TEXTS = (CLASSIFICATION, REGRESSION, MULTI_LABEL, MULTI_REGRESSION)
#: Above this difference of scores there is no answer, as long as nothing better was tuned.
_NULL_THRESHOLD = {"null_threshold": 0.0}


def task_of_head(
    weights: ModelWeights, tokenizer: Tokenizer | None, takes_pair: bool = False
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
    settings, reason = _settings(weights, takes_pair)
    kind = settings and build_task(TaskConfig(**settings)).kind
    if takes_pair and kind not in _OF_TEXTS:
        heads = ", ".join(weights.heads) or "none"
        raise InputError(
            "`--pair` requires a model that sorts texts into classes or predicts a number for "
            f"them. Received: heads {heads}."
        )
    if settings is None:
        return None, reason
    if tokenizer is None:
        return None, "the model cannot answer without a vocabulary: pass one with --tokenizer"
    config = TaskConfig(**settings)
    length = min(build_task(config).usual_length, weights.config.max_position_embeddings)
    return config.replace(max_seq_length=length), ""


def _settings(weights, takes_pair):
    """Returns the settings of a TaskConfig (dict), or None and why there is no task."""
    heads = set(weights.heads)
    for kind in (SPANS_OR_NONE, SPANS):
        if kind.name in heads:
            return {"name": kind.official_tasks[0]}, ""
    if _CLASSIFIER not in heads:
        return None, ""
    foreign = weights.config.foreign_keys
    classes = foreign.get("architectures")
    class_name = str(classes[0]) if isinstance(classes, list) and classes else ""
    if class_name.endswith("ForMultipleChoice"):
        return {"name": CHOICE.official_tasks[0]}, ""
    count = len(weights.tensors["output_bias"])
    labels = {"labels": weights.labels or tuple(f"LABEL_{number}" for number in range(count))}
    if len(set(weights.labels)) < len(weights.labels):
        return None, "the classifier cannot answer: several of its labels have the same name"
    if class_name.endswith("ForTokenClassification"):
        return {"name": TAGGING.own_tasks[0]} | labels, ""
    columns = {"text": "text", "pair": "pair" if takes_pair else None, "label": "label"}
    problem = foreign.get("problem_type") or (_REGRESSION if count == 1 else _ONE_CLASS)
    if problem == _REGRESSION:
        several = {"label": labels["labels"]} if count > 1 else {}
        return {"name": REGRESSION.own_tasks[0]} | columns | several, ""
    name = {"name": CLASSIFICATION.own_tasks[takes_pair]}
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


def write_task_run(weights: ModelWeights, tokenizer: Tokenizer, task: TaskConfig, folder: Path):
    """Writes a fine-tuned run of a task with one checkpoint, of step 0, into an empty folder.

    The tensors have the reference's names; `task` is the result of `task_of_head`.
    """
    config = FinetuneConfig(task=task, training={"precision": "float32"})
    description = {
        "origin": Path(weights.source).name,
        "origin_digest": encoder_digest(ArrayTensors(weights.tensors)),
        "origin_positions": weights.config.max_position_embeddings,
        "fingerprint": CONVERTED,
        "max_seq_length": task.max_seq_length,
    }
    run = Run.prepare(folder, config, weights.config, _NoExamples(tokenizer, description))
    run.write()
    # It has a score, so that this only checkpoint is also the best one.
    run.checkpoints.save(0, dict(weights.tensors), score=0.0)
    if build_task(task).kind is SPANS_OR_NONE:
        save_tuned(run, _NULL_THRESHOLD)
