"""Text in, answer out, from an exported folder; no run and no training file is needed."""

import logging
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from albert_keras.formats.detection import (
    AFTER_DAMAGE,
    WANTED_EXPORT,
    Place,
    detect,
    read_export_record,
    version_folder,
)
from albert_keras.serving.calls import answers_by_signatures, call_by_rows
from albert_keras.serving.layout import MASK_LITERAL, TOP_K
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task import Task, check_text
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError, Mistake

logger = logging.getLogger(__name__)


class Candidate(NamedTuple):
    """A candidate for a [MASK]: `piece` of the vocabulary (str), and its probability, `score`."""

    piece: str
    score: float


class FilledMask(NamedTuple):
    """Answer for one text."""

    text: str
    #: The text with the most likely piece for each [MASK].
    filled_text: str
    #: For each [MASK] its candidates, the most likely first; empty for a mask beyond the maximum
    #: length of the model.
    masks: tuple[tuple[Candidate, ...], ...]
    #: Tokens of the text that the model did not read.
    dropped_tokens: int


class SentenceOrder(NamedTuple):
    """The probability that `first` comes before `second`, `in_order`."""

    first: str
    second: str
    in_order: float
    dropped_tokens: int  # as in FilledMask


def read_task(folder: Path) -> Task | None:
    """Reads which task a version is for; None for a pre-trained model, or without `export.json`."""
    task = read_export_record(folder).get("task")
    return build_task(TaskConfig(**task["config"])) if task else None


class Predictor:
    """Answers of an exported model, pre-trained or fine-tuned, by its signatures over strings.

    So a `Predictor` and a model server give the same answers. The operations of the model are
    checked before anything of it is loaded, see `check_ops`. It is still a program, and TensorFlow
    is not a sandbox: open only models that you trust.

    Args:
        path: str or Path. Folder of an exported model, which means its newest version, or of one
            version; or the name of a shipped model. A SavedModel without the other files of an
            export returns what its signatures return. Or a pre-training run, whose newest
            checkpoint answers in float32 by the graph that `export` would write.

    Attributes:
        path: Path. The folder of the version or run.
        task: Task, or None for a pre-trained model.
        precision: str. "float32", "bfloat16" or "int8", in which it answers; "" if it is unknown.

    Raises:
        InputError: If there is no export, if it is damaged, or if it has operations with access to
            files, Python or other processes.
    """

    def __init__(self, path: str | Path | Place):
        place = detect(path, ("run", "export"), WANTED_EXPORT, Mistake.NO_EXPORT)
        is_run = place.run_kind == "pretraining"
        self.path = place.path if is_run else version_folder(place)
        self.task = None if is_run else read_task(self.path)
        self._record = {"precision": "float32"} if is_run else read_export_record(self.path)
        self.precision = str(self._record.get("precision", ""))
        import tensorflow as tf
        import tensorflow_text  # noqa: F401 (registers the operations of the tokenizer)

        from albert_keras.training.strategy import describe_devices

        self._tf = tf
        if is_run:
            from albert_keras.serving.export.source import open_source

            self._model = open_source(place).string_model("float32")
        else:
            from albert_keras.serving.saved_model.server_ops import load_saved_model

            self._model = load_saved_model(self.path)
        self._functions = self._model.functions if is_run else self._model.signatures
        precision = self.precision and f" in {self.precision}"
        logger.info("predicting on %s%s", describe_devices(), precision)

    def answer(self, inputs: list[dict[str, Any] | str] | dict[str, Any] | str) -> list[Any]:
        """Answers inputs of a fine-tuned model.

        Args:
            inputs: list of dict of str, see `Task.fields`; or of str, which are texts; or one of
                them. A dict may have an "id", which is part of the answer; by default it is the
                number in the list.

        Returns:
            list of named tuples, the same as of the run, see `AlbertForTexts.answers_of`.

        Raises:
            InputError: If the model is a pre-trained one, or if one of the inputs is not valid for
                its task.
        """
        inputs = [inputs] if isinstance(inputs, str | dict) else list(inputs)
        return self.answers(self._finetuned().typed_examples(inputs))

    def answers(self, examples: list[Any]) -> list[Any]:
        """Answers examples of the task, as `Task.read` returns; as `answer`."""
        columns = self._finetuned().columns_of_strings(examples)
        ids = [example.id for example in examples]
        return answers_by_signatures(self.ask, self.names, self._model_class(), columns, ids)

    def _model_class(self):
        """Returns the class of the model, an AlbertForTexts."""
        import keras

        import albert_keras.saving  # noqa: F401 (registers the classes)

        name = str(self._record.get("model", ""))
        found = keras.saving.get_registered_object(name)
        if not hasattr(found, "answers_of"):
            raise InputError(
                f"`{self.path}` must be an export of a model whose class is known. Received: "
                f"{name or 'none'}. Import the module that registers the class."
            )
        return found

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all signatures."""
        return tuple(self._functions)

    def fill_mask(self, texts: list[str] | str, top_k: int = 5) -> list[FilledMask]:
        """Fills each `[MASK]` of some texts.

        Args:
            texts: list of str, or one of them.
            top_k: int. Candidates per mask, at most 10.

        Returns:
            list of FilledMask.

        Raises:
            InputError: If a text contains no `[MASK]`, or if the model is a fine-tuned one.
        """
        if not 1 <= top_k <= TOP_K:
            raise InputError(f"`top_k` must be from 1 to {TOP_K}. Received: {top_k}.")
        self._check_signature("fill_mask")
        given = _listed(texts)
        for text in given:
            if MASK_LITERAL not in text:
                raise InputError(f"`{text}` contains no {MASK_LITERAL} to fill.")
        answers = call_by_rows(self.ask, "fill_mask", text=given)
        return [
            FilledMask(
                text,
                answer["filled_text"].decode(errors="replace"),
                _candidates(answer["pieces"], answer["scores"], text.count(MASK_LITERAL), top_k),
                int(answer["dropped_tokens"]),
            )
            for text, answer in zip(given, answers, strict=True)
        ]

    def sentence_order(
        self, firsts: list[str] | str, seconds: list[str] | str
    ) -> list[SentenceOrder]:
        """Returns the probability that pairs of texts are in this order.

        Args:
            firsts, seconds: list of str, equally long; or one text each.

        Returns:
            list of SentenceOrder.

        Raises:
            InputError: If the model has no sentence-order head, or a text is blank.
        """
        self._check_signature("sentence_order")
        pairs = _listed(firsts), _listed(seconds)
        for first, second in zip(*pairs, strict=True):
            check_text("first", first)
            check_text("second", second)
        answers = call_by_rows(self.ask, "sentence_order", first=pairs[0], second=pairs[1])
        return [
            SentenceOrder(first, second, float(answer["in_order"]), int(answer["dropped_tokens"]))
            for first, second, answer in zip(*pairs, answers, strict=True)
        ]

    def ask(self, signature: str, /, **inputs: Any) -> dict[str, np.ndarray]:
        """Calls a signature, with all rows in one batch.

        Args:
            signature: str. Its name.
            inputs: Arrays or nested lists [B, ...] by name.

        Returns:
            dict of np.ndarray [B, ...], strings as bytes.

        Raises:
            InputError: If the signature does not exist, or takes other inputs.
        """
        from albert_keras.serving.saved_model.signatures import to_array  # loads TensorFlow

        self._check_signature(signature)
        function = self._functions[signature]
        # Of a run it is a tf.function.
        listed = getattr(function, "input_signature", None) or function.structured_input_signature
        specs = {spec.name: spec for spec in self._tf.nest.flatten(listed)}
        if set(inputs) != set(specs):
            raise InputError(
                f"The signature `{signature}` takes the inputs {', '.join(sorted(specs))}. "
                f"Received: {', '.join(inputs) or 'none'}."
            )
        tensors = {
            name: self._tf.constant(to_array(inputs[name], spec), spec.dtype)
            for name, spec in specs.items()
        }
        try:
            outputs = function(**tensors)
            return {name: value.numpy() for name, value in outputs.items()}
        except self._tf.errors.OpError as error:
            reason = _short_message(error)[:200].rstrip(".")
            raise InputError(
                f"The signature `{signature}` of `{self.path}` failed: {reason}. Its inputs must "
                "have the same number of rows, and their sequences must not be too long. If this "
                f"holds, the model is damaged. {AFTER_DAMAGE}"
            ) from error

    def _finetuned(self) -> Task:
        if self.task is None:
            raise InputError(
                f"`{self.path}` must be an export of a fine-tuned model, with its export.json. "
                "Received: a pre-trained one, which fills masks, or a SavedModel without that file."
            )
        return self.task

    def _check_signature(self, name):
        if name not in self._functions:
            raise InputError(f"`{self.path}` has no signature `{name}`.")


def fill_mask(model: str | Path, texts: list[str] | str, top_k: int = 5) -> list[FilledMask]:
    """Fills the masks of some texts with an exported model; see `Predictor.fill_mask`."""
    return Predictor(model).fill_mask(texts, top_k)


def _short_message(error):
    """Returns the line of a TensorFlow error that says what is wrong, without its stack."""
    lines = [line for line in str(error).splitlines() if line and not line.startswith("\t")]
    if not lines:
        return type(error).__name__
    return lines[-1] if lines[0] == "Graph execution error:" else lines[0]


def _listed(texts):
    """Returns texts as a list; a single one is a list of one."""
    return [texts] if isinstance(texts, str) else list(texts)


def _candidates(pieces, scores, num_masks, top_k):
    """Returns the candidates of each mask; `pieces` has no row for masks that are never read."""
    of_masks = tuple(
        tuple(
            Candidate(piece.decode(), float(np.round(score, 6)))
            for piece, score in zip(*row, strict=True)
            if piece
        )
        for row in zip(pieces[:num_masks, :top_k], scores[:num_masks, :top_k], strict=True)
    )
    return of_masks + ((),) * (num_masks - len(of_masks))
