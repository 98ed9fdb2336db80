"""Batches → replicas, where the strategy's own input pipelines cannot read the records.

Records are read by Python code of this process. A TPU node or pod runs its input pipelines on its
own hosts, which have no such code: there each batch is cut into rows for each replica here.
"""

import tensorflow as tf

from albert_keras.training.distributed.cluster import num_workers


def feeds_from_here(strategy):
    """Tells whether batches have to be handed to the replicas by this process.

    Args:
        strategy: tf.distribute.Strategy.

    Returns:
        bool. True for a TPU of other hosts: a TPU node, a pod.
    """
    if not isinstance(strategy, tf.distribute.TPUStrategy):
        return False
    devices = [tf.DeviceSpec.from_string(name) for name in strategy.extended.worker_devices]
    return any(device.job not in (None, "localhost") for device in devices)


class HostFed(tf.distribute.DistributedDataset):
    """A data set of whole batches as one that `fit` takes for distributed.

    The train function has to take from it in Python, outside of a `tf.function`.

    Args:
        strategy: tf.distribute.Strategy.
        dataset: tf.data.Dataset of dicts of tensors [B, ...]: the batches, or of several workers
            the share of this one. Its number of replicas has to divide B.
    """

    def __init__(self, strategy, dataset):
        self._strategy = strategy
        self._dataset = dataset
        self._replicas = strategy.num_replicas_in_sync // num_workers(strategy)

    @property
    def element_spec(self):
        """dict of tf.TensorSpec. Of a whole batch."""
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
        # Replicas are numbered through all workers, those of a worker one after the other.
        first = context.replica_id_in_sync_group % self._replicas * rows
        return values[first : first + rows]
