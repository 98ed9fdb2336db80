"""What reduced precision costs: variants of an export compared with the float32 model."""

import itertools
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow import keras

from albert_keras.serving.export.checks import answer_in_python, inputs_of_texts
from albert_keras.serving.export.lite import LiteModel
from albert_keras.serving.export.source import ExportSource
from albert_keras.serving.graph.precision import StoredModel
from albert_keras.tasks.given import typed_examples
from albert_keras.training.scored_model import check_records
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
#: Proportion of equal answers below which something is probably wrong.
_MIN_AGREEMENT = 0.9


class AccuracyLoss(NamedTuple):
    """Difference between a variant and the float32 model, at masked tokens or at examples."""

    num_predictions: int  #: Masked tokens or examples compared.
    #: Proportion of them with the same answer: most likely piece, label, option, text or tags;
    #: scores are the same if they differ by less than 0.01.
    agreement: float
    #: Of masked tokens half the sum of the differences over all pieces, the total variation
    #: distance; of examples the difference of the probability of an answer, or of a score.
    mean_difference: float
    largest_difference: float  #: Largest difference of any probability or score.
    #: "masked_lm_loss" in nats, or the scores of the task; empty if examples have no answers.
    scores: dict[str, float]
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
        the `.keras` file; it returns a dict of variant -> AccuracyLoss, empty if there is only
        float32.
    """
    task = source.task
    if not lite and (precision, keras_precision) == ("float32", "float32"):
        if eval_data is not None:
            raise InputError(
                "`eval_data` (--eval-data) is for the comparison with float32, which requires "
                f"another `precision`, `keras_precision` or `lite`. Received: `{eval_data}` and "
                "float32 only."
            )
        return lambda module, lite_files, keras_file: {}
    if task is not None:
        examples, are_labelled = _examples(task, eval_data)
    elif eval_data is not None:
        batches = masked_records(source, eval_data)
    else:
        batches = masked_texts(source.tokenizer, source.max_seq_length)

    def compare_variants(module, lite_files, keras_file):
        stored = {} if precision == "float32" else {precision: module.stored}
        if keras_precision != "float32":
            loaded = keras.models.load_model(keras_file, compile=False)
            stored[f"keras {keras_precision}"] = StoredModel(loaded)
        names = [*stored, *(f"lite {name}" for name in lite_files)]
        logger.info("comparing %s with float32", ", ".join(names))
        usual = StoredModel(source.model)
        if task is not None:
            losses = _compare_answers(source, usual, stored, examples, are_labelled)
        else:
            variants = {name: _graph_logits(variant) for name, variant in stored.items()}
            variants |= {
                f"lite {name}": LiteModel(file).logits for name, file in lite_files.items()
            }
            losses = compare(_graph_logits(usual), variants, batches)
        for name, loss in losses.items():
            if loss.agreement < _MIN_AGREEMENT:
                share = 100 * loss.agreement
                logger.warning("%s answers as float32 in only %.1f %% of the cases", name, share)
        return losses

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


def masked_records(source: ExportSource, folder: str | Path) -> list[dict]:
    """Takes the first records of a folder, with their masks, if they fit the model.

    Returns:
        Batches of at most `NUM_TEXTS` records in total, NumPy: `input_ids`, `input_mask`,
        `segment_ids` int32 [B, S]; `masked_lm_positions`, `masked_lm_ids` int32 and
        `masked_lm_weights` float32 [B, P].
    """
    records = RecordFiles(folder)
    shape = source.model.config.replace(max_position_embeddings=source.max_seq_length)
    check_records(records, "the export", shape, source.tokenizer.digest)
    dataset = evaluation_dataset(records, _BATCH_SIZE).take(NUM_TEXTS // _BATCH_SIZE)
    with records.failures_named():
        batches = list(dataset.as_numpy_iterator())
    for batch in batches:
        # The last batch is padded with a record that does not count.
        batch["masked_lm_weights"] = batch["masked_lm_weights"] * batch["example_weights"][:, None]
    return batches


def _graph_logits(stored):
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
    """Compares variants with the float32 model at masked tokens.

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
            scores={"masked_lm_loss": float(loss.mean())},
            float32_scores={"masked_lm_loss": float(float32_loss.mean())},
        )
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


def _compare_answers(source, usual, variants, examples, are_labelled):
    """Compares the answers of fine-tuned variants, StoredModels by name; returns as `compare`."""

    def answers_of(stored):
        def model(inputs, training):
            return stored.outputs(inputs)

        return answer_in_python(source, model, examples)

    def scores_of(answers):
        return source.task.scores(examples, answers) if are_labelled else {}

    expected, losses = answers_of(usual), {}
    for name, variant in variants.items():
        found = answers_of(variant)
        pairs = list(zip(expected, found, strict=True))
        differences = np.concatenate([_difference(*pair) for pair in pairs])
        losses[name] = AccuracyLoss(
            num_predictions=len(examples),
            agreement=float(np.mean([_is_same(*pair) for pair in pairs])),
            mean_difference=float(differences.mean()),
            largest_difference=float(differences.max()),
            scores=scores_of(found),
            float32_scores=scores_of(expected),
        )
    return losses


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
