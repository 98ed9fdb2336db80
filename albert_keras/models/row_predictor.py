"""Rows → outputs of a model, on all devices of a strategy."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.models.text_rows import Rows
from data_pipeline.errors import InputError
from data_pipeline.progress import CountedProgress

logger = logging.getLogger(__name__)

_NOWHERE = -1e30  # the output per position beyond the computed positions: never chosen


class RowPredictor:
    """Runs a model over rows, sorted by length, so that little padding is computed.

    A TPU, whose shapes are fixed, receives rows of full length. If there are several
    workers, each of them computes all rows. `batch_size` counts the rows per device and call.

    Rows are computed at the next multiple of 16 of their number of tokens; at full length if the
    attention depends on the padding, as `config` says. `per_position` is whether outputs have a
    value for each position of a row. Progress lines call rows `noun`. `model` takes rows and
    `training`, as `outputs_of` of a model of texts.
    """

    def __init__(
        self,
        strategy: tf.distribute.Strategy,
        model: Callable,
        batch_size: int = 64,
        per_position: bool = False,
        noun: str = "rows",
        config: AlbertConfig | None = None,
    ):
        if batch_size < 1:
            raise InputError(f"`batch_size` must be at least 1. Received: {batch_size}.")
        self._strategy, self._per_position, self.batch_size = strategy, per_position, batch_size
        self._replicas = strategy.num_replicas_in_sync
        if isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
            self._replicas = len(strategy.extended.worker_devices)  # of this worker
        self._noun = noun
        self._config = config
        self._is_static = isinstance(strategy, tf.distribute.TPUStrategy)

        # New lengths and the last, smaller batch build no new graph.
        @tf.function(reduce_retracing=True)
        def run(inputs):
            return strategy.run(lambda part: model(part, training=False), args=(inputs,))

        self._run = run

    @classmethod
    def of_model(cls, model: Any, batch_size: int = 64) -> "RowPredictor":
        """Returns the predictor of an AlbertForTexts, under the strategy that it was made in."""
        return cls(
            model.distribute_strategy,
            model.outputs_of,
            batch_size,
            model.per_position,
            config=model.config,
        )

    def predict(self, features: Rows) -> dict[str, np.ndarray]:
        """Computes all N rows: the outputs of the model, arrays [N, ...]."""
        order = np.argsort(features.lengths, kind="stable")
        together = self.batch_size * self._replicas
        found = {}
        progress = CountedProgress(logger, "computing", len(order), self._noun)
        for begin in range(0, len(order), together):
            rows = order[begin : begin + together]
            for name, values in self._outputs(features, rows).items():
                if name not in found:
                    rest = values.shape[1:]
                    if self._per_position:
                        rest = (features.max_seq_length, *rest[1:])
                    filler = _NOWHERE if values.dtype.kind == "f" else 0
                    found[name] = np.full((len(features), *rest), filler, values.dtype)
                if self._per_position:
                    found[name][rows, : values.shape[1]] = values
                else:
                    found[name][rows] = values
            progress.add(len(rows))
        return found

    def _outputs(self, features, rows):
        """Returns the outputs for some rows, in their order."""
        length = features.max_seq_length
        is_sparse = self._config is not None and self._config.is_sparse_at(length)
        if not (self._is_static or is_sparse):
            length = features.shortest_length(rows)
        # Each replica receives the same number of rows; surplus rows are computed and discarded.
        count = self.batch_size if self._is_static else -(-len(rows) // self._replicas)
        filled = np.resize(rows, count * self._replicas)
        inputs = features.batch(filled, length)
        parts = [
            {name: tf.constant(values[number * count :][:count]) for name, values in inputs.items()}
            for number in range(self._replicas)
        ]
        inputs = parts[0]
        if self._replicas > 1:
            inputs = self._strategy.experimental_distribute_values_from_function(
                lambda context: parts[context.replica_id_in_sync_group % self._replicas]
            )
        outputs = {}
        for name, values in self._run(inputs).items():
            local = self._strategy.experimental_local_results(values)
            outputs[name] = np.concatenate([part.numpy() for part in local])[: len(rows)]
        return outputs
