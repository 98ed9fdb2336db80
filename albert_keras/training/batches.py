"""Batches → the replicas of a strategy."""

from collections.abc import Callable

import tensorflow as tf

from albert_keras.training.cluster import num_workers
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

    if is_remote_tpu(strategy):
        if training.steps_per_execution > 1:
            raise InputError(
                "`training.steps_per_execution` must be 1 on a TPU of other machines, to which "
                f"this machine sends each batch. Received: {training.steps_per_execution}. To "
                "execute several steps at once, run on the TPU's own machine."
            )
        return HostFed(strategy, read())

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


def is_remote_tpu(strategy) -> bool:
    """Returns whether the replicas are a TPU of other hosts, a TPU node or pod.

    Records are read by Python code of this process. Such a TPU runs input pipelines on its own
    hosts, which do not have that code, so this process must send it the batches.
    """
    if not isinstance(strategy, tf.distribute.TPUStrategy):
        return False
    devices = [tf.DeviceSpec.from_string(name) for name in strategy.extended.worker_devices]
    return any(device.job not in (None, "localhost") for device in devices)


class HostFed(tf.distribute.DistributedDataset):
    """A dataset of whole batches that `fit` accepts as distributed.

    The train function must iterate over it in Python, outside a `tf.function`. `dataset` has dicts
    of tensors [B, ...]; the number of this worker's replicas must divide B.
    """

    def __init__(self, strategy: tf.distribute.Strategy, dataset: tf.data.Dataset):
        self._strategy = strategy
        self._dataset = dataset
        self._replicas = strategy.num_replicas_in_sync // num_workers(strategy)

    @property
    def element_spec(self):
        """dict of tf.TensorSpec of a whole batch."""
        return self._dataset.element_spec

    def __iter__(self):
        for batch in self._dataset:
            yield self._strategy.experimental_distribute_values_from_function(
                lambda context, batch=batch: {
                    name: self._rows(values, context) for name, values in batch.items()
                }
            )

    def _rows(self, values, context):
        rows = values.shape[0] // self._replicas
        # Replicas are numbered across all workers, one worker after the other.
        first = context.replica_id_in_sync_group % self._replicas * rows
        return values[first : first + rows]
