"""What reduced precision costs: variants of an export compared with the float32 model."""

import itertools
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow import keras

from albert_keras.serving.export.checks import inputs_of_texts
from albert_keras.serving.export.lite import LiteModel
from albert_keras.serving.export.source import ExportSource
from albert_keras.serving.graph.precision import StoredModel
from albert_keras.serving.task_answers import TaskPredictor
from albert_keras.tasks.given import typed_examples
from data_pipeline.errors import InputError
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.record_folder import RecordFiles
from data_pipeline.text.installed_docs import installed_documentation
from data_pipeline.tokenizers.tokenization import Tokenizer

logger = logging.getLogger(__name__)

#: Texts or examples that variants are compared on.
NUM_TEXTS = 256
_BATCH_SIZE = 16
#: Texts of the documentation are truncated to this length, so that a comparison takes seconds.
_MAX_TOKENS = 128
#: Minimum number of tokens on each side of a masked one.
_CONTEXT = 2
#: Examples that the run's own precision is compared on, which is part of every export.
NUM_OF_RUN = 32
#: Proportion of equal answers below which something is probably wrong.
_MIN_AGREEMENT = 0.9


class AccuracyLoss(NamedTuple):
    """Difference between a variant and the float32 model, at masked tokens."""

    num_predictions: int  #: Masked tokens compared.
    agreement: float  #: Proportion of them with the same most likely piece.
    #: Difference of the probabilities: half the sum over all pieces, the total variation distance,
    #: as a mean over predictions.
    mean_difference: float
    largest_difference: float  #: Largest difference of the probability of any piece.
    loss: float  #: Masked-LM loss of the variant, in nats.
    float32_loss: float  #: Masked-LM loss of the float32 model, in nats.


class TaskLoss(NamedTuple):
    """Difference between the answers of a fine-tuned variant and of the float32 model."""

    num_predictions: int  #: Examples compared.
    #: Proportion of them with the same answer: label, option, text or tags; scores are the same if
    #: they differ by less than 0.01.
    agreement: float
    mean_difference: float  #: Of the probability of an answer, or of a score.
    largest_difference: float
    scores: dict[str, float]  #: By the metrics of the task; empty if examples have no answers.
    float32_scores: dict[str, float]


def prepare_comparison(
    source: ExportSource,
    precision: str,
    lite: Sequence[str],
    eval_data: str | Path | None,
    keras_precision: str = "float32",
) -> Callable:
    """Reads data to compare variants on, and returns a function that compares them.

    So data that cannot be used are refused before any work.

    Args:
        lite: "float16" and "int8", the variants for TensorFlow Lite.
        eval_data: Held-out records; for a fine-tuned model a file of labelled examples. None takes
            the development examples of the training if they still exist, else texts of the
            documentation of installed packages.
        keras_precision: As of `export`.

    Returns:
        A function of a StringModel, a dict of "float16" or "int8" -> Path of a `.tflite` file, and
        the `.keras` file; it returns a dict of variant -> AccuracyLoss or TaskLoss, empty if there
        is only float32. If a run was fine-tuned in another precision, in which `predict` answers
        for it, that is a variant as well, such as "run mixed_bfloat16".
    """
    task, tokenizer, length = source.task, source.tokenizer, source.max_seq_length
    has_variants = lite or (precision, keras_precision) != ("float32", "float32")
    of_run = source.load_trained if task is not None else None
    if eval_data is not None and not has_variants:
        raise InputError(
            "`eval_data` (--eval-data) is for the comparison with float32, which requires another "
            f"`precision`, `keras_precision` or `lite`. Received: `{eval_data}` and float32 only."
        )
    if task is not None:
        needs_examples = has_variants or of_run
        examples, are_labelled = _examples(task, eval_data) if needs_examples else ([], False)
    elif eval_data is not None:
        examples = masked_records(eval_data, tokenizer.vocab_size, length, tokenizer.digest)
    elif has_variants:
        examples = masked_texts(tokenizer, length)

    def compare_variants(module, lite_files, keras_file):
        losses = {}
        if of_run:
            name = f"run {source.trained_precision}"
            part = examples[:NUM_OF_RUN]
            losses[name] = _compare_task(source, of_run(), name, part, are_labelled)
        if not has_variants:
            return losses
        stored = {} if precision == "float32" else {precision: module.stored}
        if keras_precision != "float32":
            loaded = keras.models.load_model(keras_file, compile=False)
            stored[f"keras {keras_precision}"] = StoredModel(loaded)
        names = [*stored, *(f"lite {name}" for name in lite_files)]
        logger.info("comparing %s with float32", ", ".join(names))
        if task is not None:
            return losses | {
                name: _compare_task(source, variant.outputs, name, examples, are_labelled)
                for name, variant in stored.items()
            }
        variants = {name: graph_logits(variant) for name, variant in stored.items()}
        variants |= {f"lite {name}": LiteModel(file).logits for name, file in lite_files.items()}
        return compare(graph_logits(StoredModel(source.model)), variants, examples)

    return compare_variants


def masked_texts(tokenizer: Tokenizer, max_seq_length: int) -> list[dict]:
    """Takes texts of the documentation of installed packages, and masks one token of each.

    The same installation results in the same texts and masks: batches of `NUM_TEXTS` texts in
    total, as `masked_records` returns them.
    """
    random = np.random.default_rng(0)
    length = min(max_seq_length, _MAX_TOKENS)
    texts = (document.paragraphs[0] for document in installed_documentation())
    encoded = (tokenizer.encode(text)[: length - 2] for text in texts)
    chosen = itertools.islice((ids for ids in encoded if len(ids) > 2 * _CONTEXT), NUM_TEXTS)
    rows = [[tokenizer.cls_id, *ids, tokenizer.sep_id] for ids in chosen]
    if len(rows) < NUM_TEXTS:
        raise InputError(
            f"Variants are compared on {NUM_TEXTS} texts of the installed documentation, but only "
            f"{len(rows)} are long enough. Give records with --eval-data."
        )
    lengths = np.array([len(row) for row in rows])
    ids = tf.keras.utils.pad_sequences(rows, length, padding="post")
    positions = random.integers(1 + _CONTEXT, lengths - 1 - _CONTEXT)[:, None]
    labels = np.take_along_axis(ids, positions, axis=1)
    np.put_along_axis(ids, positions, tokenizer.mask_id, axis=1)
    batch = {
        "input_ids": ids,
        "input_mask": (np.arange(length) < lengths[:, None]).astype(np.int32),
        "segment_ids": np.zeros_like(ids),
        "masked_lm_positions": positions.astype(np.int32),
        "masked_lm_ids": labels,
        "masked_lm_weights": np.ones(labels.shape, np.float32),
    }
    return [
        {name: values[begin : begin + _BATCH_SIZE] for name, values in batch.items()}
        for begin in range(0, NUM_TEXTS, _BATCH_SIZE)
    ]


def masked_records(
    folder: str | Path, vocab_size: int, max_seq_length: int, tokenizer_digest: str | None = None
) -> list[dict]:
    """Takes the first records of a folder, with their masks, if they fit the model.

    Returns:
        Batches of at most `NUM_TEXTS` records in total, NumPy: `input_ids`, `input_mask`,
        `segment_ids` int32 [B, S]; `masked_lm_positions`, `masked_lm_ids` int32 and
        `masked_lm_weights` float32 [B, P].
    """
    records = RecordFiles(folder)
    info = records.info
    other = None
    if info.vocab_size != vocab_size:
        other = f"a tokenizer with {info.vocab_size} pieces instead of {vocab_size}"
    elif tokenizer_digest and info.tokenizer_digest not in (None, tokenizer_digest):
        other = "another one of the same size"
    if other:
        raise InputError(
            f"`{records.folder}` must be made with the tokenizer of the run. Received: {other}."
        )
    if info.max_seq_length > max_seq_length:
        raise InputError(
            f"The records in `{records.folder}` must not be longer than the `max_seq_length` of "
            f"the export ({max_seq_length}). Received: {info.max_seq_length}."
        )
    dataset = evaluation_dataset(records, _BATCH_SIZE).take(NUM_TEXTS // _BATCH_SIZE)
    with records.failures_named():
        batches = list(dataset.as_numpy_iterator())
    for batch in batches:
        # The last batch is padded with a record that does not count.
        batch["masked_lm_weights"] = batch["masked_lm_weights"] * batch["example_weights"][:, None]
    return batches


def graph_logits(stored: StoredModel) -> Callable:
    """Returns a function from a batch to the logits of a StoredModel, float32 [B, P, V]."""
    masked_lm = tf.function(stored.masked_lm, reduce_retracing=True)

    def logits(batch):
        names = ("input_ids", "input_mask", "segment_ids")
        inputs = {name: tf.constant(batch[name]) for name in names}
        return masked_lm(inputs, tf.constant(batch["masked_lm_positions"])).numpy()

    return logits


def compare(
    float32_logits: Callable, variants: dict[str, Callable], batches: list[dict]
) -> dict[str, AccuracyLoss]:
    """Compares variants with the float32 model; warns if answers mostly differ.

    Models are functions from a batch of `masked_records` to logits, float32 [B, P, V].
    """
    columns = {name: [] for name in variants}
    for batch in batches:
        real = batch["masked_lm_weights"] > 0
        labels = batch["masked_lm_ids"][real][:, None]
        expected = tf.nn.log_softmax(float32_logits(batch)[real]).numpy()
        for name, logits in variants.items():
            found = tf.nn.log_softmax(logits(batch)[real]).numpy()
            differences = np.abs(np.exp(found) - np.exp(expected))
            columns[name].append(
                np.stack(
                    [
                        found.argmax(axis=1) == expected.argmax(axis=1),
                        differences.sum(axis=1) / 2,
                        differences.max(axis=1),
                        -np.take_along_axis(found, labels, axis=1)[:, 0],
                        -np.take_along_axis(expected, labels, axis=1)[:, 0],
                    ]
                )
            )
    losses = {}
    for name, parts in columns.items():
        same, difference, largest, loss, float32_loss = np.concatenate(parts, axis=1)
        losses[name] = AccuracyLoss(
            num_predictions=len(same),
            agreement=float(same.mean()),
            mean_difference=float(difference.mean()),
            largest_difference=float(largest.max()),
            loss=float(loss.mean()),
            float32_loss=float(float32_loss.mean()),
        )
        _warn_of_disagreement(name, losses[name])
    return losses


def _examples(task, eval_data):
    """Returns examples of a task, and whether they have answers."""
    if eval_data is not None:
        return task.read_file(eval_data, labelled=True)[:NUM_TEXTS], True
    try:
        return task.read(task.dev_splits[0])[:NUM_TEXTS], True
    except InputError as error:
        logger.info("no development examples (%s): comparing on documentation", error)
    texts = (document.paragraphs[0] for document in installed_documentation())
    texts = list(itertools.islice((text for text in texts if text.strip()), NUM_TEXTS))
    return typed_examples(task, inputs_of_texts(task.kind, task.takes_pair, texts)), False


def _compare_task(source, variant, name, examples, are_labelled):
    task = source.task

    def answers(outputs):
        def model(inputs, training):
            return outputs(inputs)

        config = source.model.config
        return TaskPredictor(task, source.tokenizer, model, source.tuned, config).answers(examples)

    expected, found = answers(StoredModel(source.model).outputs), answers(variant)
    pairs = list(zip(expected, found, strict=True))
    differences = np.concatenate([_difference(one, other) for one, other in pairs])
    loss = TaskLoss(
        num_predictions=len(examples),
        agreement=float(np.mean([_is_same(one, other) for one, other in pairs])),
        mean_difference=float(differences.mean()),
        largest_difference=float(differences.max()),
        scores=task.scores(examples, found) if are_labelled else {},
        float32_scores=task.scores(examples, expected) if are_labelled else {},
    )
    _warn_of_disagreement(name, loss)
    return loss


def _is_same(one, other):
    for name in ("label", "labels", "choice", "tags", "text"):
        if hasattr(one, name):
            return getattr(one, name) == getattr(other, name)
    return bool((_difference(one, other) < 0.01).all())


def _difference(one, other):
    """Returns the differences between the numbers of two answers, float [1 or more]."""
    names = ("score", "scores", "probabilities", "probability")
    name = next(name for name in names if hasattr(one, name))
    values = [getattr(answer, name) for answer in (one, other)]
    if isinstance(values[0], dict):
        values = [list(value.values()) for value in values]
    return np.abs(np.subtract(*map(np.atleast_1d, values)))


def _warn_of_disagreement(name, loss):
    if loss.agreement < _MIN_AGREEMENT:
        logger.warning(
            "%s gives the same answer as float32 in only %.1f %% of the cases",
            name,
            100 * loss.agreement,
        )
