"""Requests of several clients in one call of the graph, with the server's rules and errors."""

import threading
import time
from typing import NamedTuple

import numpy as np

from albert_keras.serving.protocol.status import StatusError, invalid, status_of


class BatchingParameters(NamedTuple):
    """As in the file of `--batching_parameters_file`; times in microseconds."""

    max_batch_size: int = 1000
    batch_timeout_micros: int = 0
    max_enqueued_batches: int = 10
    allowed_batch_sizes: tuple = ()


class _Task:
    def __init__(self, tensors, size, deadline):
        self.tensors, self.size, self.deadline = tensors, size, deadline
        self.done, self.outputs, self.error = threading.Event(), None, None

    def finish(self, outputs=None, error=None):
        self.outputs, self.error = outputs, error
        self.done.set()


class Batcher:
    """Merges requests that ask for the same inputs and outputs.

    Args:
        run: function of signature, outputs and dict of arrays -> dict of arrays.
        parameters: BatchingParameters.
    """

    def __init__(self, run, parameters):
        sizes = parameters.allowed_batch_sizes
        if sizes and (list(sizes) != sorted(set(sizes)) or sizes[-1] != parameters.max_batch_size):
            raise invalid("allowed_batch_sizes must be increasing and end with max_batch_size")
        self._run, self._parameters = run, parameters
        self._queues, self._changed = {}, threading.Condition()
        self._closed = False

    def run(self, name, wanted, tensors, timeout):
        """Returns the outputs of one request, from a batch it shared with others."""
        if any(array.ndim == 0 for array in tensors.values()):
            raise invalid("Batching session Run() input tensors must have at least one dimension.")
        sizes = {len(array) for array in tensors.values()}
        if len(sizes) != 1:
            raise invalid(
                "Batching session Run() input tensors must have equal 0th-dimension size."
            )
        task = _Task(tensors, sizes.pop(), time.monotonic() + timeout)
        largest = self._parameters.max_batch_size
        if task.size > largest:
            raise invalid(
                f"Task size {task.size} is larger than maximum input batch size {largest}"
            )
        if not self._enqueue((name, frozenset(tensors), frozenset(wanted)), wanted, task):
            return self._run(name, wanted, tensors)
        task.done.wait()
        if task.error:
            raise task.error
        return task.outputs

    def close(self):
        """Lets the threads end when their queues are empty."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _enqueue(self, key, wanted, task):
        """Returns whether a thread will take the task; not so once the version is unloaded."""
        with self._changed:
            if self._closed:
                return False
            if key not in self._queues:
                self._queues[key] = []
                threading.Thread(target=self._work, args=(key, wanted), daemon=True).start()
            queue = self._queues[key]
            room = self._parameters.max_batch_size * self._parameters.max_enqueued_batches
            if sum(one.size for one in queue) + task.size > room:
                raise StatusError(
                    "UNAVAILABLE",
                    "The batch scheduling queue to which this task was submitted is full; "
                    f"currently {self._parameters.max_enqueued_batches} batches enqueued",
                )
            queue.append(task)
            self._changed.notify_all()
            return True

    def _work(self, key, wanted):
        while tasks := self._next(self._queues[key]):
            late = [task for task in tasks if time.monotonic() > task.deadline]
            for task in late:
                message = "Run() timeout exceeded while waiting in batching queue"
                task.finish(error=StatusError("RESOURCE_EXHAUSTED", message))
            tasks = [task for task in tasks if task not in late]
            if not tasks:
                continue
            try:
                for task, outputs in zip(tasks, self._merged(key[0], wanted, tasks), strict=True):
                    task.finish(outputs)
            except Exception as error:
                status = status_of(error)
                for task in tasks:  # one status for all of the batch
                    task.finish(error=status)

    def _next(self, queue):
        """Waits for a batch and takes it off the queue; None where there will be none."""
        with self._changed:
            while not queue:
                if self._closed:
                    return None
                self._changed.wait()
            end = time.monotonic() + self._parameters.batch_timeout_micros / 1e6
            while sum(task.size for task in queue) < self._parameters.max_batch_size:
                left = end - time.monotonic()
                if left <= 0 or self._closed:
                    break
                self._changed.wait(left)
            tasks, size = [], 0
            while queue and size + queue[0].size <= self._parameters.max_batch_size:
                size += queue[0].size
                tasks.append(queue.pop(0))
            return tasks

    def _merged(self, name, wanted, tasks):
        """Returns the outputs of each task."""
        size = sum(task.size for task in tasks)
        padded = next((one for one in self._parameters.allowed_batch_sizes if one >= size), size)
        tensors = {}
        for alias, first in tasks[0].tensors.items():
            arrays = [task.tensors[alias] for task in tasks]
            if any(array.shape[1:] != first.shape[1:] for array in arrays):
                raise StatusError(
                    "FAILED_PRECONDITION",
                    f"Tensors with name '{alias}' from different tasks have different shapes and "
                    "padding is turned off. Set pad_variable_length_inputs to true, or ensure that "
                    "all tensors with the same name have equal dimensions starting with the first "
                    "dim.",
                )
            arrays += [arrays[-1][:1]] * (padded - size)
            tensors[alias] = np.concatenate(arrays)
        outputs = self._run(name, wanted, tensors)
        for alias, array in outputs.items():
            if array.ndim == 0 or len(array) != padded:
                raise StatusError(
                    "FAILED_PRECONDITION",
                    f"Batched output tensor {alias}'s 0th dimension does not equal the sum of the "
                    "0th dimension sizes of the input tensors",
                )
        ends = np.cumsum([task.size for task in tasks])
        return [
            {alias: array[end - task.size : end] for alias, array in outputs.items()}
            for task, end in zip(tasks, ends, strict=True)
        ]
