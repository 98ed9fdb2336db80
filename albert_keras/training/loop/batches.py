"""Batches → the replicas of a strategy."""

import tensorflow as tf

from albert_keras.training.loop.feeding import HostFed, feeds_from_here
from data_pipeline.errors import InputError


def batches_of(strategy, training, read):
    """Deals the batches of a run out to replicas: each gets the same rows whatever their number.

    Replica r of R sees rows r * B / R to (r + 1) * B / R of each batch.

    Args:
        strategy: tf.distribute.Strategy.
        training: LoopConfig.
        read: callable. Makes the tf.data.Dataset of batches, without end; `worker` (number of this
            worker and of all) and `replicas` (equal parts its share is dealt out in) may be given.

    Returns:
        tf.data.Dataset or DistributedDataset, without end.
    """
    if strategy is tf.distribute.get_strategy():
        return read()

    if feeds_from_here(strategy):
        if training.steps_per_execution > 1:
            raise InputError(
                "`training.steps_per_execution` should be 1 on a TPU of other machines: this one "
                f"hands it each batch. Received: {training.steps_per_execution}. Run on the TPU's "
                "own machine for more."
            )
        return HostFed(strategy, read())

    def share_of(context):
        workers = context.num_input_pipelines
        return read(
            worker=(context.input_pipeline_id, workers),
            replicas=strategy.num_replicas_in_sync // workers,
        )

    return strategy.distribute_datasets_from_function(share_of)


def check_batch_size(strategy, training):
    """Makes sure that a batch can be split up evenly.

    Raises:
        InputError: If it cannot.
    """
    replicas, parts = strategy.num_replicas_in_sync, training.accumulation_steps
    if training.batch_size % (replicas * parts):
        raise InputError(
            "`training.batch_size` should be a multiple of the number of replicas times "
            f"`training.accumulation_steps`. Received: {training.batch_size}, {replicas} "
            f"replica(s) and {parts} part(s)."
        )
