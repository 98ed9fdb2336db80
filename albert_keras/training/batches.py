"""Records → the batches of a strategy's replicas."""

import tensorflow as tf

from albert_keras.training.feeding import HostFed, feeds_from_here
from data_pipeline.errors import InputError
from data_pipeline.reader import training_dataset


def training_batches(strategy, records, training, first_step=0):
    """Deals the batches of a run out to replicas: each gets the same rows whatever their number.

    Replica r of R sees rows r * B / R to (r + 1) * B / R of each batch.

    Args:
        strategy: tf.distribute.Strategy.
        records: RecordFiles.
        training: TrainingConfig.
        first_step: int. Step to begin at.

    Returns:
        tf.data.Dataset or DistributedDataset, without end.
    """
    settings = {"seed": training.seed, "first_step": first_step, "masks": training.masks}
    if strategy is tf.distribute.get_strategy():
        return training_dataset(records, training.batch_size, **settings)

    if feeds_from_here(strategy):
        if training.steps_per_execution > 1:
            raise InputError(
                "`training.steps_per_execution` should be 1 on a TPU of other machines: this one "
                f"hands it each batch. Received: {training.steps_per_execution}. Run on the TPU's "
                "own machine for more."
            )
        return HostFed(strategy, training_dataset(records, training.batch_size, **settings))

    def share_of(context):
        workers = context.num_input_pipelines
        return training_dataset(
            records,
            training.batch_size,
            **settings,
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
