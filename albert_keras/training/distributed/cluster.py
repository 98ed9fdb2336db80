"""Several workers, one process each: who they are, how they agree, how they notice a loss.

Each of these functions is the identity, or true, where there is one worker only. The others are
collectives: every worker has to call them, in the same order.
"""

import contextlib
import functools
import json
import os
import sys
from typing import NamedTuple

import tensorflow as tf

from data_pipeline.errors import InputError

_FORM = (
    '{"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}}, the '
    "index counting the workers"
)

#: Parts of messages that tell of a peer that is gone, whatever the error's class. "Collective ops
#: is aborted" is none: so begin those about workers that did not call the same operations, too.
_SIGNS_OF_LOSS = (
    "coordination service",
    "coordinationservice",
    "heartbeat",
    "incarnation",
    "connection reset by peer",
    "failed to connect",
    "socket closed",
)


class WorkerLost(Exception):
    """Another worker is gone; TensorFlow can go on only in a new process, from a checkpoint."""


class Workers(NamedTuple):
    """The workers that TF_CONFIG tells of.

    Attributes:
        addresses: tuple of str. "host:port" of each, the chief first.
        index: int. Which of them this process is.
    """

    addresses: tuple
    index: int


def read_workers(text):
    """Reads TF_CONFIG; refuses what TensorFlow would take for one worker, or fail on unexplained.

    Args:
        text: str or None. Value of the environment variable.

    Returns:
        Workers.

    Raises:
        InputError: If it is absent or unusable.
    """
    if not text:
        raise InputError(f"`TF_CONFIG` should be set for strategy multiworker, as {_FORM}.")
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
        raise InputError(f"`TF_CONFIG` should be {_FORM}. Received: {text}")
    return Workers(tuple(addresses), index + len(chiefs) * (task["type"] == "worker"))


def num_workers(strategy):
    """Returns the number of processes that train together (int)."""
    if not isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy):
        return 1
    cluster = strategy.cluster_resolver.cluster_spec()
    return sum(len(cluster.job_tasks(job)) for job in cluster.jobs if job in ("chief", "worker"))


def is_chief(strategy):
    """Tells whether this process is the first worker, the one that writes the run (bool)."""
    if num_workers(strategy) == 1:
        return True
    resolver = strategy.cluster_resolver
    has_chief = "chief" in resolver.cluster_spec().jobs
    return (resolver.task_type, resolver.task_id) == ("chief" if has_chief else "worker", 0)


def share(strategy, value):
    """Gives all workers a number of the chief, and waits for them.

    Args:
        strategy: tf.distribute.Strategy.
        value: int. What other workers give is ignored; it may be None there.

    Returns:
        int.
    """
    if num_workers(strategy) == 1:
        return value
    replicas = strategy.num_replicas_in_sync // num_workers(strategy)
    return _sum(strategy, value if is_chief(strategy) else 0) // replicas


def any_of(strategy, flag):
    """Tells all workers whether one of them raised a flag; takes about a millisecond.

    Args:
        strategy: tf.distribute.Strategy.
        flag: bool.

    Returns:
        bool.
    """
    if num_workers(strategy) == 1:
        return bool(flag)
    return _sum(strategy, int(bool(flag))) > 0


def barrier(strategy):
    """Waits until all workers are here."""
    share(strategy, 0)


def lost_worker(error):
    """Tells whether an error of TensorFlow means that another worker is gone.

    Args:
        error: Exception.

    Returns:
        bool.
    """
    if not isinstance(error, tf.errors.OpError):
        return False
    gone = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError)
    message = str(error).lower()
    return isinstance(error, gone) or any(sign in message for sign in _SIGNS_OF_LOSS)


@contextlib.contextmanager
def noticing_lost_workers(has_others=True):
    """Turns TensorFlow's many errors about a peer that is gone into one.

    Args:
        has_others: bool. Whether there are other workers to lose.

    Raises:
        WorkerLost: In place of them.
    """
    try:
        yield
    except tf.errors.OpError as error:
        if not has_others or not lost_worker(error):
            raise
        raise WorkerLost("another worker is gone; the last checkpoint holds") from error


def restart():
    """Starts this program anew in this process, with the same arguments; does not return.

    What waits in buffers of logs and outputs is written first. For programs only: a library's
    caller may hold things that a new program would not know of.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def _sum(strategy, value):
    return int(_summing(strategy)(tf.constant(value, tf.int64)))


@functools.cache
def _summing(strategy):
    """Makes the graph function that adds up a number over all replicas; eager takes three times."""

    def over_replicas(value):
        context = tf.distribute.get_replica_context()
        # As a mere argument it has no device, which the reduction wants to know.
        return context.all_reduce(tf.distribute.ReduceOp.SUM, tf.identity(value))

    @tf.function(input_signature=[tf.TensorSpec([], tf.int64)])
    def total(value):
        sums = strategy.run(over_replicas, args=(value,))
        return strategy.experimental_local_results(sums)[0]

    return total


def _is_address(address):
    host, _, port = address.rpartition(":")
    return bool(host) and port.isdecimal() and 0 < int(port) < 65536
