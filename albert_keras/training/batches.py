"""Batches → the replicas of a strategy."""

from collections.abc import Callable

import tensorflow as tf

from albert_keras.training.loop_config import LoopConfig
from data_pipeline.errors import InputError


def batches_of(
    strategy: tf.distribute.Strategy, training: LoopConfig, read: Callable[..., tf.data.Dataset]
):
    """Distributes the endless batches of a run to the replicas of a strategy.

    Replica r of R gets rows r * B / R to (r + 1) * B / R of each batch. `read` takes `worker`
    (index of this worker and number of workers) and `replicas` (equal parts of its batch).
    """
    if strategy is tf.distribute.get_strategy():
        return read()

    def part_of_worker(context):
        workers = context.num_input_pipelines
        return read(
            worker=(context.input_pipeline_id, workers),
            replicas=strategy.num_replicas_in_sync // workers,
        )

    return strategy.distribute_datasets_from_function(part_of_worker)


def check_batch_size(strategy, training):
    """Raises InputError if a batch cannot be split evenly."""
    replicas, parts = strategy.num_replicas_in_sync, training.accumulation_steps
    if training.batch_size % (replicas * parts):
        raise InputError(
            "`training.batch_size` must be a multiple of the number of replicas times "
            f"`training.accumulation_steps`. Received: {training.batch_size}, {replicas} "
            f"replica(s) and {parts} part(s)."
        )
