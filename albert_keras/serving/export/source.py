"""What is exported: a trained model, and everything that belongs to it."""

import math
from pathlib import Path
from typing import Any, NamedTuple

import keras

from albert_keras.formats.detection import Place, convert_command, read_export_record
from albert_keras.formats.open_weights import open_weights
from albert_keras.hub import shared_name
from albert_keras.models.preprocessor import AlbertPreprocessor
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.models.text_model import AlbertForTexts
from albert_keras.runs.log_file import read_evaluations
from albert_keras.runs.model_record import with_changes
from albert_keras.serving.graph.string_model import StringModel
from albert_keras.serving.graph.string_tasks import TaskModel
from albert_keras.serving.graph.text_model import TextModel
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.results import baseline_scores, result_of, verdict_of
from albert_keras.tasks.task import Task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Maximum sequence length of a pre-trained export, unless another is requested.
_USUAL_LENGTH = 512


class ExportSource(NamedTuple):
    """A checkpoint of a run, or weights from elsewhere."""

    record: dict[str, Any]  #: Contents of `run.json`; for other weights what is known about them.
    step: int | None  #: None if unknown.
    #: float32, with the weights of the checkpoint; a model of texts with its preprocessor.
    model: AlbertForPretraining | AlbertForTexts
    tokenizer: Tokenizer
    max_seq_length: int  #: S.
    task: Task | None = None  #: That reads files of examples; None for a pre-trained model.
    scores: dict[str, Any] = {}  #: Scores of the checkpoint on development examples; may be empty.
    #: Main score of each baseline of a fine-tuning on these examples, by its name; may be empty.
    baselines: dict[str, float] = {}
    verdict: str | None = None  # the sentence of a fine-tuning that says whether to use it

    @property
    def kind(self) -> str:
        """Either "pretraining" or "finetuning"."""
        return "pretraining" if isinstance(self.model, AlbertForPretraining) else "finetuning"

    def string_model(self, precision: str) -> StringModel:
        """Builds the StringModel; arguments and errors as of that class."""
        if isinstance(self.model, AlbertForTexts):
            return TaskModel(self.model, precision)
        rows = AlbertPreprocessor(self.tokenizer, self.max_seq_length)
        return TextModel(self.model, rows, precision)

    def describe(self) -> dict:
        """Returns what readers of an export must know about the model, plain JSON."""
        task = None
        if self.task is not None:
            files = {"data_dir", "train", "dev"}
            task = {
                "name": self.task.config.name,
                "kind": self.task.kind,
                "labels": list(self.task.labels),
                "takes_pair": self.task.takes_pair,
                "max_seq_length": self.max_seq_length,
                "config": self.task.config.model_dump(mode="json", exclude=files),
            }
        run = {name: value for name, value in self.record.items() if name != "command"}
        return {
            "step": self.step,
            "max_seq_length": self.max_seq_length,
            "num_parameters": self.model.count_params(),
            "kind": self.kind,
            "model": keras.saving.get_registered_name(type(self.model)),
            "task": task,
            "scores": _without_folders(self.scores),
            "baselines": self.baselines,
            "verdict": self.verdict,
            "run": _without_folders(run),
        }


def open_source(
    path: str | Path | Place | keras.Model,
    step: int | str | None = None,
    sequence_length: int | None = None,
) -> ExportSource:
    """Loads a model to export; arguments as `run`, `step` and `sequence_length` of `export`."""
    if isinstance(path, keras.Model):
        if not isinstance(path, AlbertForTexts) or path.preprocessor is None:
            raise InputError(
                "A Keras model to export must be a model of texts of this package with its "
                f"preprocessor. Received: {type(path).__name__}. `model.export` of Keras takes "
                "models of any class."
            )
        return _of_model(path, sequence_length)
    origin = open_weights(path, step)
    if origin.run is not None:
        return _of_run(origin, sequence_length)
    if origin.record is not None and origin.record.preprocessor is not None:
        source = _of_model(origin.build("float32"), sequence_length)
    else:
        usual = origin.sequence_length if origin.kind == "export" else None
        source = _of_weights(origin, sequence_length or usual)
    if origin.kind != "export":
        return source
    # It keeps the record of its training and its scores.
    record = read_export_record(origin.place)
    known = {"record": record.get("run"), "scores": record.get("scores")}
    return source._replace(**{key: one for key, one in known.items() if isinstance(one, dict)})


def _of_run(origin, sequence_length):
    run, step, is_finetuned = origin.run, origin.step, origin.run.kind == "finetuning"
    trained = origin.sequence_length
    usual = trained if is_finetuned else min(trained or _USUAL_LENGTH, _USUAL_LENGTH)
    length, task, known = _length(run.albert_config, sequence_length, usual), None, {}
    if is_finetuned:
        task = TaskConfig(**run.record["config"]["task"])  # with the files of its training
        task = build_task(task.replace(max_seq_length=length))
        known = _comparison(run)
    model = origin.build("float32", sequence_length=length)
    record = run.record | {"albert_config": model.config.to_dict()}
    scores = _scores(run, step)
    return ExportSource(record, step, model, origin.tokenizer, length, task, scores=scores, **known)


def _of_model(model, sequence_length):
    """Takes a model of texts as it is in memory."""
    task = None
    length = _length(model.config, sequence_length, model.preprocessor.sequence_length)
    model = with_changes(model, "float32", length)
    if (settings := model.task_settings()) is not None:
        task = build_task(TaskConfig(**settings | {"max_seq_length": length}))
    return _from_elsewhere(ExportSource({}, None, model, model.tokenizer, length, task))


def _of_weights(origin, sequence_length):
    """Opens a pre-trained model, or an encoder alone, such as one of sentence-transformers.

    The export of an encoder alone has `embed`, and the cosine of two texts.
    """
    config, tokenizer, task = origin.albert_config, origin.tokenizer, None
    if "masked_lm" in origin.heads:
        usual = min(origin.sequence_length or _USUAL_LENGTH, _USUAL_LENGTH)
        length = _length(config, sequence_length, usual)
        model = AlbertForPretraining.from_preset(origin, dtype="float32")
    elif set(origin.heads) - {"sentence_order"}:
        raise InputError(
            f"`{origin}` must have a masked-LM head or none to be exported. Received: heads "
            f"{', '.join(origin.heads)}. Convert it first: `{convert_command(origin.path)}` makes "
            "a run that answers, which can be exported."
        )
    else:
        pooling = origin.pooling or "mean"
        length = _length(config, sequence_length, origin.longest_text)
        settings = {"pooling": pooling, "max_seq_length": length}
        task = build_task(TaskConfig(name="similarity", text="text", pair="pair", **settings))
        model = task.build_model(config, tokenizer, dtype="float32")
        origin.load(model)
    source = ExportSource({}, origin.step, model, tokenizer, length, task)
    data = {"origin": shared_name(origin.path), "origin_digest": origin.digest}
    return _from_elsewhere(source, data=data)


def _from_elsewhere(source, **more):
    """Returns a source that is not of a run, with a record like `run.json`."""
    known = {
        "kind": source.kind,
        "albert_config": source.model.config.to_dict(),
        "tokenizer_digest": source.tokenizer.digest,
    }
    return source._replace(record=known | more)


def _length(config, given, usual):
    """Returns S; without a given or a usual length as many positions as there are, up to 512."""
    length = given or min(usual or _USUAL_LENGTH, config.max_position_embeddings)
    if not 8 <= length <= config.max_position_embeddings:
        raise InputError(
            "`sequence_length` must be from 8 to `max_position_embeddings` "
            f"({config.max_position_embeddings}). Received: {length}."
        )
    return length


def _scores(run, step):
    scores = dict(read_evaluations(run.path)).get(step, {})
    # JSON has no NaN.
    return {
        name: value
        for name, value in scores.items()
        if not isinstance(value, float) or math.isfinite(value)
    }


def _comparison(run):
    """Returns how a fine-tuning compares with its baselines: fields of a source by name."""
    result = result_of(run.path)
    verdict = result and verdict_of(result)
    return {
        "baselines": baseline_scores(result) if result else {},
        "verdict": verdict.sentence if verdict else None,
    }


def _without_folders(value):
    """Returns plain JSON with the last part only of each absolute path: exports are given away."""
    if isinstance(value, dict):
        return {name: _without_folders(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_without_folders(one) for one in value]
    return Path(value).name if isinstance(value, str) and value.startswith("/") else value
