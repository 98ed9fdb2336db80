"""Fine-tuned runs, and their models, which answer."""

import contextlib
import logging
from pathlib import Path
from typing import Any

import keras
import numpy as np

from albert_keras.formats.detection import Place, detect
from albert_keras.formats.keras_file import KerasFile
from albert_keras.models.text_model import AlbertForTexts
from albert_keras.runs.run import Run
from albert_keras.runs.run_record import CONVERTED
from albert_keras.tasks.features import Features
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.row_predictor import RowPredictor
from albert_keras.tasks.task import Task
from albert_keras.tasks.task_config import TaskConfig
from albert_keras.training.strategy import build_strategy, describe_devices
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import write_json
from data_pipeline.limits import reading_json, with_digest

logger = logging.getLogger(__name__)

_TUNED = "tuned.json"
#: The task of a model in memory, by the name of its class.
_NAMES_OF_MODELS = {
    "AlbertForClassification": "classification",
    "AlbertForMultiLabel": "classification",
    "AlbertForRegression": "regression",
    "AlbertForTagging": "tagging",
    "AlbertForSpans": "squad1",
    "AlbertForMultipleChoice": "race",
    "AlbertForSimilarity": "similarity",
}


def is_converted(run: Run) -> bool:
    """Returns whether a fine-tuned run was converted from another format: it has no examples."""
    return run.record["data"].get("fingerprint") == CONVERTED


def save_tuned(run: Run, tuned: dict[str, float]):
    """Saves the result of `Task.tuned_answers` in the folder of a run."""
    write_json(run.path / _TUNED, with_digest(tuned), indent=None)


def read_tuned(run: Run) -> dict[str, float]:
    """Returns what `save_tuned` saved in the folder of a run, or an empty dict."""
    path = run.path / _TUNED
    if not path.is_file():
        return {}
    with reading_json(path) as values:
        return {name: float(value) for name, value in values.items()}


def open_run(path: str | Path | Place | Run) -> Run:
    """Opens the fine-tuned run in a folder, or in the folder of a fine-tuning its best run.

    Raises:
        InputError: If there is no fine-tuned run, or the fine-tuning is not complete.
    """
    wanted = (
        "It must be a fine-tuned run, or the folder of a fine-tuning. Create one with "
        "`albert-keras finetune`."
    )
    if isinstance(path, Run):
        return path
    place = detect(path, ("run", "fine-tuning"), wanted)
    if place.run is None or place.run_kind != "finetuning":
        raise InputError(
            f"`{path}` must be a fine-tuned run. Received: a run of {place.run_kind}. Fine-tune it "
            "with `albert-keras finetune`; or, to fill masks, export it with `albert-keras export` "
            "and use the export.",
            Mistake.NOT_FINETUNED,
        )
    return Run.open(place.run)


def task_of(run: Run) -> Task:
    """Returns the task of a fine-tuned run with its files, which need not exist any more."""
    return build_task(TaskConfig(**run.record["config"]["task"]))


class TrainedTask:
    """A model with the task that it was trained for: examples → answers.

    Args:
        task: Task.
        model: The model of its kind, with a preprocessor.
        tuned: As `Task.tuned_answers` returned it.
    """

    def __init__(self, task: Task, model: AlbertForTexts, tuned: dict[str, float]):
        self.task, self.model, self.tuned = task, model, tuned
        self._predictor: RowPredictor | None = None

    @classmethod
    def open(
        cls,
        path: str | Path | Place | Run,
        step: int | str | None = "best",
        precision: str | None = None,
        strategy: str | None = None,
    ) -> "TrainedTask":
        """Opens a fine-tuned run; arguments and errors as of `open_finetuned`."""
        run = open_run(path)
        task, tuned = task_of(run), read_tuned(run)
        scope = contextlib.nullcontext()
        if strategy is not None:
            built = build_strategy(strategy)
            used = precision or run.record["config"]["training"]["precision"]
            logger.info("predicting on %s in %s", describe_devices(built), used)
            scope = built.scope()
        with scope:
            model = run.load_model(step, precision, task=task)
        task.complete(model, run.tokenizer, tuned)
        task = build_task(task.config.replace(train=None, dev=None, data_dir=None))
        return cls(task, model, tuned)

    @classmethod
    def of_model(cls, model: AlbertForTexts) -> "TrainedTask":
        """Returns the task of a model in memory."""
        return cls(build_task(task_config_of(model)), model, model.thresholds)

    def examples(self, inputs: list[dict[str, Any] | str]) -> list[Any]:
        """Returns examples made from a user's inputs, see `Task.typed_examples`."""
        return self.task.typed_examples(inputs)

    def answers(self, examples: list[Any], batch_size: int = 64) -> list[Any]:
        """Answers examples: list of named tuples, see `Task.answers`."""
        features, outputs = self.compute_outputs(examples, batch_size)
        return self.task.answers(examples, features, outputs, self.tuned or None)

    def compute_outputs(
        self, examples: list[Any], batch_size: int = 64
    ) -> tuple[Features, dict[str, np.ndarray]]:
        """Returns the features of examples, and the outputs of the model for them."""
        features = self.task.features(examples, self.model.preprocessor.tokenizer)
        if self._predictor is None or self._predictor.batch_size != batch_size:
            model, per_position = self.model, self.task.per_position
            self._predictor = RowPredictor(
                model.distribute_strategy,
                model.outputs_of,
                batch_size,
                per_position,
                config=model.config,
            )
        return features, self._predictor.predict(features)


def open_finetuned(
    model: str | Path | Place,
    step: int | str | None = "best",
    precision: str | None = None,
    strategy: str | None = None,
) -> Any:
    """Returns a fine-tuned model, a Keras model with its preprocessor, labels and thresholds.

    Args:
        model: Folder of a fine-tuning or of one of its runs, see `open_run`.
        step: int, "best" or None. Which checkpoint; None takes the newest.
        precision: See `Run.load_model`.
        strategy: See `strategy.py`; None takes the current strategy of TensorFlow.

    Raises:
        InputError: If there is none, or it is damaged.

    Example:
        model = open_finetuned("runs/sst-2")
        model.answer(["a gripping, funny film"])[0].label
    """
    return TrainedTask.open(model, step, precision, strategy).model


def open_text_model_of(
    place: Place, step: int | str | None = None, precision: str | None = None
) -> Any:
    """Returns the model of a fine-tuning or of a `.keras` file with its head; None if it has none.

    Args:
        place: What is at the `source` of `AlbertForTexts.from_preset`.
        step: Of a run; None is the best one.
        precision: Of a run, see `Run.load_model`.
    """
    if place.kind == "keras":
        model: keras.Model = KerasFile(place.path).load()
        return model if isinstance(model, AlbertForTexts) and model.preprocessor else None
    if place.run_kind == "finetuning":
        return open_finetuned(place, step or "best", precision)
    return None


def task_config_of(model: AlbertForTexts) -> TaskConfig:
    """Returns the TaskConfig of a model of texts in memory."""
    rows, labels = model.preprocessor.get_config(), tuple(model.labels)
    settings: dict[str, Any] = {"max_seq_length": rows["sequence_length"]}
    settings |= {"labels": labels} if labels else {}
    name = next(base.__name__ for base in type(model).__mro__ if base.__name__ in _NAMES_OF_MODELS)
    settings["name"] = _NAMES_OF_MODELS[name]
    if settings["name"] in ("classification", "regression"):
        settings |= {"text": "text", "pair": "pair" if model.pairs else None}
        settings |= {"pair_encoding": model.pair_encoding if model.pairs else "joint"}
        names = labels or tuple(map(str, range(model.num_labels)))
        if name == "AlbertForMultiLabel":
            settings |= {"label_separator": "|", "labels": names}
        elif name == "AlbertForRegression":
            settings.pop("labels", None)
            settings["label"] = names if model.num_labels > 1 else "label"
        else:
            settings |= {"labels": names, "label": "label"}
        settings["threshold"] = model.threshold
    elif name == "AlbertForSimilarity":
        settings |= {"text": "text", "pair": "pair", "label": "label"}
        settings["pooling"] = model.head.pooling
    elif name == "AlbertForSpans":
        settings["name"] = "squad2" if model.can_be_none else "squad1"
        settings |= {key: getattr(model, key) for key in ("n_best", "max_answer_length")}
        settings |= {key: rows[key] for key in ("max_query_length", "doc_stride")}
    elif name == "AlbertForTagging":
        settings |= {"word_split": rows["word_split"] or "punctuation"}
        settings["labels"] = labels or tuple(map(str, range(model.num_labels)))
    else:
        settings["max_qa_length"] = rows["max_qa_length"]
    return TaskConfig(**settings)
