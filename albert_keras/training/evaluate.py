"""Scores of a run on records it was not trained on, beside what guessing scores."""

import math
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.runs.run import Run
from albert_keras.training.distributed.strategy import build_strategy
from albert_keras.training.loop.reports import log_evaluation
from albert_keras.training.pretraining_step import PretrainingStep
from data_pipeline.errors import InputError
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.record_folder import RecordFiles


class Evaluation(NamedTuple):
    """Scores on held-out records.

    Attributes:
        path: Path. Folder of the run.
        step: int. The checkpoint that was scored.
        num_records, num_predictions: int.
        masked_lm_loss: float. Nats per masked piece.
        masked_lm_accuracy: float.
        unigram_accuracy: float. What always guessing the most frequent masked piece of these
            very records scores: no guesser that ignores the context does better.
        unigram_guess: str. That piece.
        sentence_order_loss: float. Nats per record; None, as the two below, without such a head.
        sentence_order_accuracy: float.
        sentence_order_error: float. Half the width of the 95 % interval of the accuracy.
        sentence_order_chance: float. Share of the more frequent label.
    """

    path: Path
    step: int
    num_records: int
    num_predictions: int
    masked_lm_loss: float
    masked_lm_accuracy: float
    unigram_accuracy: float
    unigram_guess: str
    sentence_order_loss: float | None
    sentence_order_accuracy: float | None
    sentence_order_error: float | None
    sentence_order_chance: float


def evaluate(run, data, step=None, batch_size=64, strategy="auto"):
    """Scores a checkpoint of a run; the scores are added to the run's log.

    Args:
        run: str or Path. Folder of the run.
        data: str or Path. Folder of records made with the run's tokenizer.
        step: int, "best" or None. Which checkpoint; None takes the newest sound one.
        batch_size: int. B.
        strategy: str. See `strategy.py`.

    Returns:
        Evaluation.

    Raises:
        InputError: If the run, its checkpoint or the records cannot be used together.
    """
    run = Run.open(run)
    run.check_kind("pretraining", "evaluate --data RECORDS")
    records = RecordFiles(data)
    config = run.albert_config
    _check_same_tokenizer(run, records)
    training = run.record["config"]["training"]
    step = run.checkpoints.choose(step)
    has_sentence_head = training["sentence_order_weight"] > 0
    with build_strategy(strategy).scope():
        model = AlbertForPretraining(
            config, sentence_head=has_sentence_head, dtype=training["precision"]
        )
        run.checkpoints.restore(step, model)
        scorer = PretrainingStep(model, training["sentence_order_weight"])
        scorer.compile()
    dataset = evaluation_dataset(records, batch_size)
    scores = scorer.evaluate(dataset, verbose=0, return_dict=True)
    guess = _guessing(dataset)
    order_loss = order_accuracy = order_error = None
    if has_sentence_head:
        order_loss, order_accuracy = (
            scores["sentence_order_loss"],
            scores["sentence_order_accuracy"],
        )
        order_error = 1.96 * math.sqrt(order_accuracy * (1 - order_accuracy) / len(records))
    evaluation = Evaluation(
        path=run.path,
        step=step,
        num_records=len(records),
        num_predictions=guess["num_predictions"],
        masked_lm_loss=scores["masked_lm_loss"],
        masked_lm_accuracy=scores["masked_lm_accuracy"],
        unigram_accuracy=guess["unigram_accuracy"],
        unigram_guess=_piece(run, guess["unigram_id"]),
        sentence_order_loss=order_loss,
        sentence_order_accuracy=order_accuracy,
        sentence_order_error=order_error,
        sentence_order_chance=guess["sentence_order_chance"],
    )
    log_evaluation(run.path, step, evaluation._asdict() | {"path": str(data)})
    return evaluation


def _guessing(dataset):
    """Counts labels: what a guesser that looks at no input would score."""
    pieces, orders = np.zeros(0, np.int64), np.zeros(2, np.int64)
    for batch in dataset.as_numpy_iterator():
        real = batch["example_weights"] > 0
        masked = batch["masked_lm_ids"][real][batch["masked_lm_weights"][real] > 0]
        counted = np.bincount(masked, minlength=len(pieces))
        counted[: len(pieces)] += pieces
        pieces = counted
        orders += np.bincount(batch["sentence_order_labels"][real], minlength=2)
    return {
        "num_predictions": int(pieces.sum()),
        "unigram_id": int(pieces.argmax()),
        "unigram_accuracy": float(pieces.max() / max(1, pieces.sum())),
        "sentence_order_chance": float(orders.max() / max(1, orders.sum())),
    }


def _piece(run, piece_id):
    try:
        return run.tokenizer.piece_of(piece_id)
    except InputError:  # trained on foreign records that came without a tokenizer
        return str(piece_id)


def _check_same_tokenizer(run, records):
    wanted, found = run.record["tokenizer_digest"], records.info.tokenizer_digest
    if records.info.vocab_size != run.albert_config.vocab_size:
        raise InputError(
            f"`{records.folder}` should be made with the tokenizer of `{run.path}`. Received: "
            f"{records.info.vocab_size} pieces, not {run.albert_config.vocab_size}."
        )
    if wanted and found and wanted != found:
        raise InputError(
            f"`{records.folder}` should be made with the tokenizer of `{run.path}`. Received: "
            "another one of the same size. "
            f"Build the records with --tokenizer {run.path}/tokenizer."
        )
