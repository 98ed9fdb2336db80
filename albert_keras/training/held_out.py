"""Scores on held-out records while a run goes on: what its best checkpoint is chosen by."""

import logging

from tensorflow import keras

from albert_keras.training.loop.reports import log_evaluation
from albert_keras.training.pretraining_step import PretrainingStep
from data_pipeline.reader.reader import evaluation_dataset

logger = logging.getLogger(__name__)

_BATCH_SIZE = 64


class ScoreHeldOut(keras.callbacks.Callback):
    """Scores the model on held-out records each so many steps and at the end.

    Put it after `Report` and before `SaveCheckpoints`. Make it in the scope of the strategy.

    Args:
        folder: Path. Of the run; scores go to its log.
        records: RecordFiles.
        trained: PretrainingStep. The model it trains is scored.
        every: int. Steps between scores.
        first_step, last_step: int. Steps done before this `fit`, and the one that ends the run.
        writes: bool. Whether this worker writes the log.

    Attributes:
        score: float or None. Loss on the held-out records at `step`, in nats.
        step: int or None.
    """

    def __init__(self, folder, records, trained, every, first_step, last_step, writes=True):
        super().__init__()
        self.folder, self.every, self.writes = folder, every, writes
        self.done, self.first_step, self.last_step = first_step, first_step, last_step
        self.score = self.step = None
        self._dataset = evaluation_dataset(records, _BATCH_SIZE)
        # A step of its own: evaluating starts all means of a step anew.
        self._scorer = PretrainingStep(trained.model, trained.sentence_order_weight)
        self._scorer.compile()

    def on_train_batch_end(self, batch, logs=None):
        before, self.done = self.done, self.first_step + batch + 1
        if self.done // self.every == before // self.every and self.done < self.last_step:
            return
        results = self._scorer.evaluate(self._dataset, verbose=0, return_dict=True)
        scores = {
            name: value for name, value in results.items() if name.endswith(("loss", "accuracy"))
        }
        # Each prediction counts once; `loss` is a mean over batches, of which the last is short.
        order_weight = self._scorer.sentence_order_weight
        scores["loss"] = scores["masked_lm_loss"] + order_weight * scores.get(
            "sentence_order_loss", 0.0
        )
        self.step, self.score = self.done, scores["loss"]
        if not self.writes:
            return
        log_evaluation(self.folder, self.done, scores)
        order = scores.get("sentence_order_accuracy")
        logger.info(
            "held out at step %d: loss %.3f  mlm %.3f%s",
            self.done,
            scores["loss"],
            scores["masked_lm_accuracy"],
            "" if order is None else f"  sop {order:.3f}",
        )
