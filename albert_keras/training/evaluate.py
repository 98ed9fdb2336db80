"""Scores on held-out records, during training and afterwards, compared with guessing."""

import logging
import math
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np

from albert_keras.formats.open_weights import open_weights
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.runs.learned_context import context_verdict
from albert_keras.runs.log_file import log_evaluation
from albert_keras.runs.run import Run
from albert_keras.runs.trained_data import RECORDS, Overlap, check_overlap, read_digests
from albert_keras.training.fitting import RunContext
from albert_keras.training.strategy import build_strategy
from albert_keras.training.trained_records import digests_of
from data_pipeline.errors import InputError
from data_pipeline.progress import CountedProgress
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.record_files import RecordFiles
from data_pipeline.reports.count_baselines import count_baselines
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_files import TOKENIZER_FOLDER

logger = logging.getLogger(__name__)

_BATCH_SIZE = 64


class Evaluation(NamedTuple):
    """Scores on records; held-out scores if `overlap` counts no records that were trained on."""

    path: Path  # the model as given: folder of a run or of an export, or the name of a shipped one
    step: int | None  # the checkpoint that was scored; None if unknown
    num_records: int
    num_predictions: int
    masked_lm_loss: float  # nats per masked token
    masked_lm_accuracy: float
    #: Accuracy of always guessing the most frequent masked token of these very records: without
    #: the context no guess scores better.
    unigram_accuracy: float
    unigram_guess: str  # that token
    #: Nats per record. This and the next two are None if the model has no sentence-order head, or
    #: the records have no sentence-order labels.
    sentence_order_loss: float | None
    sentence_order_accuracy: float | None
    sentence_order_error: float | None  # half the width of the 95 % interval of the accuracy
    sentence_order_chance: float | None  # proportion of the more frequent label, if there are any
    #: Fields of an `Overlap`: how many of the records were trained on; None if that is unknown.
    overlap: dict[str, int] | None = None
    #: By name, "masked_lm_loss" and "masked_lm_accuracy" of models that only count, "unigram" and
    #: "bigram", see `count_baselines`; None without the records of the training.
    baselines: dict[str, dict[str, float]] | None = None


def evaluate(
    model: str | Path,
    data: str | Path | RecordFiles,
    step: int | str | None = None,
    batch_size: int = _BATCH_SIZE,
    strategy: str = "auto",
    allow_trained_rows: bool = False,
) -> Evaluation:
    """Scores a pre-trained model. Scores of a run are appended to its log.

    A run is compared with bigrams of the records that it was trained on, if they are still there.

    Args:
        model: str or Path. Folder of a run or of a pre-trained export, or the name of a shipped
            model.
        data: RecordFiles or their folder. Built with the tokenizer of the model.
        step: int, "best" or None. Checkpoint of a run; None means the newest valid one.
        batch_size: int. B.
        strategy: str. See `strategy.py`.
        allow_trained_rows: bool. Whether to score records that were all trained on.

    Raises:
        InputError: If the model, its checkpoint or the records cannot be used together; or if all
            records were trained on, unless that is allowed.
    """
    records = RecordFiles.of(data)
    weights = open_scored_model(model, records, step)
    own = weights.run
    # All labels of records without the objective are 0, which is no order to predict.
    has_labels = records.info.objective != "none"
    overlap = None
    if own is not None:
        overlap = check_overlap(
            read_digests(own.path, RECORDS),
            digests_of(records),
            RECORDS,
            str(records.folder),
            allow_trained_rows=allow_trained_rows,
        )
    built = build_strategy(strategy)
    dataset = evaluation_dataset(records, batch_size)
    with built.scope():
        if own is None:
            scored = AlbertForPretraining.from_preset(weights, dtype="float32")
        else:
            scored = weights.build()
        scorer = build_scorer(scored, own, has_labels)
    progress = CountedProgress(logger, "evaluating", len(records), "records")
    with records.failures_named():
        scores = score(scorer, dataset, on_batch=lambda: progress.add(batch_size))
    order_accuracy, order_error = scores.get("sentence_order_accuracy"), None
    if order_accuracy is not None:
        order_error = 1.96 * math.sqrt(order_accuracy * (1 - order_accuracy) / len(records))
    evaluation = Evaluation(
        path=Path(model),
        step=weights.step,
        masked_lm_loss=scores["masked_lm_loss"],
        masked_lm_accuracy=scores["masked_lm_accuracy"],
        sentence_order_loss=scores.get("sentence_order_loss"),
        sentence_order_accuracy=order_accuracy,
        sentence_order_error=order_error,
        overlap=None if overlap is None else overlap._asdict(),
        **comparisons(records, None if own is None else training_records(own)),
    )
    if own is not None:
        logged = evaluation._asdict() | {"path": str(records.folder)}
        log_evaluation(own.path, evaluation.step, logged)
    return evaluation


def training_records(run: Run) -> RecordFiles | None:
    """Returns the records that a run was trained on; None if they are not where they were."""
    data = run.record["data"]
    try:
        records = RecordFiles(data["path"])
    except InputError:
        return None
    return records if records.info.fingerprint == data["fingerprint"] else None


def comparisons(records: RecordFiles, training: RecordFiles | None) -> dict[str, Any]:
    """Scores what needs no model: guessing, and counts of the records of the training.

    Returns:
        dict, fields of an `Evaluation` by name; without `training` the baselines are None.
    """
    size, has_labels = records.info.vocab_size, records.info.objective != "none"
    with records.failures_named():
        masked, orders = _count_labels(evaluation_dataset(records, _BATCH_SIZE), size)
    baselines = None
    if training is not None:
        logger.info("counting bigrams of `%s`", training.folder)
        counted = count_baselines(training, records)
        baselines = {name: found._asdict() for name, found in counted.items()}
    tokenizer = Tokenizer.load(records.folder / TOKENIZER_FOLDER)
    return {
        "num_records": len(records),
        "num_predictions": int(masked.sum()),
        "unigram_accuracy": float(masked.max() / max(1, masked.sum())),
        "unigram_guess": tokenizer.piece_of(int(masked.argmax())),
        "sentence_order_chance": float(orders.max() / max(1, orders.sum())) if has_labels else None,
        "baselines": baselines,
    }


def open_scored_model(
    path: str | Path, records: RecordFiles, step: int | str | None = None
) -> OpenedModel:
    """Opens a pre-trained model to score on records; arguments as of `open_weights`.

    Raises:
        InputError: If there is no such model, it has no masked-LM head, or cannot read the records.
    """
    weights = open_weights(path, step)
    if "masked_lm" not in weights.heads:
        raise InputError(
            f"`{path}` must be a pre-trained model with a masked-LM head, to be scored on records. "
            f"Received: heads {', '.join(weights.heads) or 'none'}."
        )
    run = weights.run
    digest = weights.tokenizer.digest if run is None else run.record["tokenizer_digest"]
    config = weights.albert_config
    records.check_for(weights.path, config.vocab_size, config.max_position_embeddings, digest)
    return weights


def build_scorer(
    model: AlbertForPretraining, run: Run | None = None, has_labels: bool = True
) -> AlbertForPretraining:
    """Compiles a model, of a run, to be scored; call it in the strategy's scope.

    `has_labels` says whether the records have sentence-order labels.
    """
    weight = 1.0 if run is None else run.record["config"]["training"]["sentence_order_weight"]
    model.compile(None, sentence_order_weight=weight if has_labels else 0.0)
    return model


def score(scorer: AlbertForPretraining, dataset, on_batch=lambda: None) -> dict[str, float]:
    """Scores batches of held-out records: losses in nats, and accuracies."""
    after_batch = keras.callbacks.LambdaCallback(on_test_batch_end=lambda batch, logs: on_batch())
    return scorer.evaluate(dataset, verbose=0, return_dict=True, callbacks=[after_batch])


class ScoreHeldOut(keras.callbacks.Callback):
    """Scores the model on held-out records every few steps and at the end, with entries in the log.

    Put it after `Report` and before `SaveCheckpoints`. Create it in the scope of the strategy. The
    scores at the end of the training are compared with guessing by `judge`.
    `overlap` says how many of the records are trained on.
    """

    def __init__(self, context: RunContext, records: RecordFiles, every: int, overlap: Overlap):
        super().__init__()
        self.every = every
        #: Loss on the held-out records at `step`, the newest that was scored, in nats.
        self.score = self.step = None
        self.scored_on = records.info.fingerprint
        best = context.run.checkpoints.best_score(self.scored_on)
        self._best = math.inf if best is None else best
        self._context, self._overlap = context, overlap
        self._records, self._dataset = records, evaluation_dataset(records, _BATCH_SIZE)
        self._newest: dict[str, Any] = {}  # what was logged at `step`

    def on_train_batch_end(self, batch, logs=None):
        progress = self._context.progress
        if not progress.is_at(self.every):
            return
        model = self._context.training_step
        with self._records.failures_named(), model.means_kept():
            scores = {name: float(value) for name, value in score(model, self._dataset).items()}
        self.step, self.score, progress.results = progress.step, scores["loss"], scores
        if self.score <= self._best:
            self._best = self.score
            progress.save_soon = True
        if not self._context.is_chief:
            return
        self._newest = scores | {"overlap": self._overlap._asdict()}
        log_evaluation(self._context.run.path, self.step, self._newest)
        order = scores.get("sentence_order_accuracy")
        logger.info(
            "held-out records%s at step %d: loss %.3f  mlm %.3f%s",
            ", some of which were trained on," if self._overlap.normalised else "",
            self.step,
            scores["loss"],
            scores["masked_lm_accuracy"],
            "" if order is None else f"  sop {order:.3f}",
        )

    def judge(self, training: RecordFiles) -> None:
        """Logs whether the newest scores are better than bigrams of the records of the training."""
        if not self._newest:
            return
        found = self._newest | comparisons(self._records, training)
        log_evaluation(self._context.run.path, self.step, found)
        is_better, sentence = context_verdict(found)
        logger.log(logging.INFO if is_better else logging.WARNING, "%s", sentence)


def _count_labels(dataset, vocab_size):
    """Counts masked tokens by id, int64 [V], and sentence-order labels, int64 [2]."""
    masked, orders = np.zeros(vocab_size, np.int64), np.zeros(2, np.int64)
    for batch in dataset.as_numpy_iterator():
        real = batch["example_weights"] > 0
        ids = batch["masked_lm_ids"][real][batch["masked_lm_weights"][real] > 0]
        masked += np.bincount(ids, minlength=vocab_size)
        orders += np.bincount(batch["sentence_order_labels"][real], minlength=2)
    return masked, orders
