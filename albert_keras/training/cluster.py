"""Several workers, one process each: who they are, how they agree, how they notice a lost one.

With several workers `broadcast`, `any_of` and `barrier` are collective operations: every worker
must call them, in the same order. With one worker they do nothing.
"""

import contextlib
import functools
import json
import os
import sys
from typing import NamedTuple

import tensorflow as tf

from albert_keras.training.errors import WorkerLost
from data_pipeline.errors import InputError

_FORM = (
    '{"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}}, with the '
    "index of the worker"
)

#: Parts of messages that report a lost peer, whatever the error's class. "Collective ops is
#: aborted" is not among them: errors about workers that call different operations contain it, too.
_SIGNS_OF_LOSS = (
    "coordination service",
    "coordinationservice",
    "heartbeat",
    "incarnation",
    "connection reset by peer",
    "failed to connect",
    "socket closed",
)


class Workers(NamedTuple):
    """The workers that TF_CONFIG describes."""

    addresses: tuple  # "host:port" of each, the chief first
    index: int  # index of this process among them


def read_workers(text: str | None) -> Workers:
    """Reads the value of TF_CONFIG; raises InputError if it is absent or unusable.

    TensorFlow would misread some such values, or fail on them without a reason.
    """
    if not text:
        raise InputError(
            f"`TF_CONFIG` is not set. The strategy multiworker requires it, as {_FORM}."
        )
    try:
        config = json.loads(text)
        cluster, task = config["cluster"], config["task"]
        chiefs = list(cluster.get("chief", []))
        addresses = [*chiefs, *cluster.get("worker", [])]
        index = int(task["index"])
        is_usable = 0 <= index < len(cluster[task["type"]]) and task["type"] in ("chief", "worker")
        is_usable = is_usable and all(_is_address(address) for address in addresses)
    except (AttributeError, KeyError, TypeError, ValueError):
        is_usable = False
    if not is_usable:
        raise InputError(f"`TF_CONFIG` must be {_FORM}. Received: {text}")
    return Workers(tuple(addresses), index + len(chiefs) * (task["type"] == "worker"))


def num_workers(strategy) -> int:
    """Returns the number of processes that train together."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return 1
    cluster = strategy.cluster_resolver.cluster_spec()
    return sum(len(cluster.job_tasks(job)) for job in cluster.jobs if job in ("chief", "worker"))


def is_chief(strategy) -> bool:
    """Returns whether this process is the first worker, which writes the run."""
    if num_workers(strategy) == 1:
        return True
    resolver = strategy.cluster_resolver
    has_chief = "chief" in resolver.cluster_spec().jobs
    return (resolver.task_type, resolver.task_id) == ("chief" if has_chief else "worker", 0)


def broadcast(strategy, value):
    """Sends a number (int) of the chief to all workers, waits for them, and returns it.

    The value is ignored on the other workers, where it may be None.
    """
    if num_workers(strategy) == 1:
        return value
    replicas = strategy.num_replicas_in_sync // num_workers(strategy)
    return _sum(strategy, value if is_chief(strategy) else 0) // replicas


def any_of(strategy, flag):
    """Returns, on all workers, whether one of them raised a flag (bool); takes a millisecond."""
    if num_workers(strategy) == 1:
        return bool(flag)
    return _sum(strategy, int(bool(flag))) > 0


def barrier(strategy):
    """Waits until all workers have called it."""
    broadcast(strategy, 0)


def means_lost_worker(error: Exception) -> bool:
    """Returns whether an exception of TensorFlow means that another worker is gone."""
    if not isinstance(error, tf.errors.OpError):
        return False
    gone = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError)
    message = str(error).lower()
    return isinstance(error, gone) or any(sign in message for sign in _SIGNS_OF_LOSS)


@contextlib.contextmanager
def noticing_lost_workers(has_others: bool = True):
    """Turns TensorFlow's various errors about a lost peer, if there are any, into WorkerLost."""
    try:
        yield
    except tf.errors.OpError as error:
        if not has_others or not means_lost_worker(error):
            raise
        raise WorkerLost(
            "another worker is gone; the run can be resumed from its last checkpoint"
        ) from error


def restart():
    """Restarts this program in the same process, with the same arguments; does not return.

    Output buffers are written first. For programs only: the caller of a library may have state
    that a new program would not have.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _sum(strategy, value):
    return int(_summing(strategy)(tf.constant(value, tf.int64)))


@functools.cache
def _summing(strategy):
    """Returns a graph function, three times faster than eager, that sums over all replicas."""

    def over_replicas(value):
        context = tf.distribute.get_replica_context()
        # An argument has no device, which the reduction needs.
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(value))

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)])
    def total(value):
        sums = strategy.run(over_replicas, args=(value,))
        return strategy.experimental_local_results(sums)[0]

    return total


def _is_address(address):
    host, _, port = address.rpartition(":")
    return bool(host) and port.isdecimal() and 0 < int(port) < 65536
