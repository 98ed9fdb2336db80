"""python -m tests.gpu_check: the check of `make check-gpu`, at most four minutes on a GPU.

It compares a GPU with the CPU, its precisions and what XLA compiles with each other, and a resumed
training with one that was not interrupted. Without a GPU it prints a line. Exit code 0: all bounds
hold. 1: one does not.
"""

import logging
import math
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from albert_keras.machine.doctor import gpu_finding
from albert_keras.report import table
from albert_keras.training.loop_config import COMPILED
from albert_keras.training.strategy import choose_precision, describe_devices
from tests.benchmarks.measure import in_new_process
from tests.gpu_check.training import fine_tuned, losses, resumed, step_seconds

#: A small model as in the recipe albert-gpu-5-minutes: batch size, sequence length, and the tokens
#: per second that are required.
FAST = (("6x384", 512, 128), 1.5e6)
#: Model that is trained in the other checks, with its batch size and sequence length.
SMALL = ("4x256", 16, 64)
_UPDATES = 50


class Row(NamedTuple):
    """What was found, and whether it is as it must be."""

    what: str
    found: str
    bound: str = ""
    holds: bool = True


def main() -> int:
    """Prints a table, each row when it is known; returns the exit code."""
    logging.basicConfig(level=logging.ERROR)
    if not tf.config.list_physical_devices("GPU"):
        print("check-gpu: this machine has no GPU that TensorFlow can use; nothing is checked")
        return 0
    started, rows = time.monotonic(), []
    for row in check_rows():
        rows.append(row)
        print(" | ".join(row[:3]), flush=True)
    print(
        "\n".join(
            ["", *table(("check", "found", "must be", ""), map(_cells, rows), left=(0, 1, 2))]
        )
    )
    print(f"{time.monotonic() - started:.0f} s, TensorFlow {tf.__version__}")
    return 0 if all(row.holds for row in rows) else 1


def check_rows() -> Iterator[Row]:
    """Yields all rows."""
    yield from device_rows()
    yield from step_rows()
    with tempfile.TemporaryDirectory() as folder:
        yield from run_rows(Path(folder))
    yield fast_row(*FAST)


def device_rows() -> Iterator[Row]:
    """Yields what the GPU is, and whether TensorFlow and XLA find all that they need."""
    yield Row("device", f"{describe_devices()}; auto is {choose_precision(None)}")
    finding = gpu_finding(len(tf.config.list_physical_devices("GPU")))
    yield Row("doctor", finding.text, "no warning", finding.fix is None)


def step_rows(shape: tuple = SMALL) -> Iterator[Row]:
    """Yields how losses of updates differ between devices, precisions, and what is compiled."""
    parts = COMPILED[1:]
    (cpu,) = in_new_process(losses, shape, [("auto", "float32", 5)], True)
    runs = [(part, "float32", 5) for part in parts]
    runs += [("auto", precision, _UPDATES) for precision in ("float32", "mixed_bfloat16")]
    *found, exact, rounded = in_new_process(losses, shape, runs, False)
    for part, values in zip(parts, found, strict=True):
        yield _difference(
            f"5 updates in float32, compile={part}, beside the CPU", values, cpu, 1e-4
        )
    yield _difference(f"{_UPDATES} updates in bfloat16, beside float32", rounded, exact, 2e-2)


def run_rows(folder: Path) -> Iterator[Row]:
    """Yields whether a run resumes, and whether a model can be fine-tuned."""
    difference = in_new_process(resumed, folder)
    found = "bit for bit" if difference == 0 else f"weights differ by {difference:.1e}"
    # TensorFlow and XLA add the gradients of an embedding in any order.
    yield Row("resumed beside uninterrupted", found, "at most 1e-3", difference <= 1e-3)
    accuracy = in_new_process(fine_tuned, folder)
    yield Row("fine-tuned on two classes", f"{accuracy:.0%}", "at least 90%", accuracy >= 0.9)


def fast_row(shape: tuple[str, int, int], least: float) -> Row:
    """Returns how fast a small model trains by Muon."""
    model, batch_size, max_seq_length = shape
    seconds = in_new_process(step_seconds, shape, "muon")
    speed = batch_size * max_seq_length / seconds
    what = f"{model}, B {batch_size}, S {max_seq_length}, by Muon"
    found = f"{1e3 * seconds:.1f} ms, {speed:,.0f} tokens/s"
    return Row(what, found, f"{least:,.0f} tokens/s", speed >= least)


def _difference(what, found, expected, bound):
    """Returns a Row of the largest relative difference of two lists of losses."""
    differences = [abs(a - b) / abs(b) for a, b in zip(found, expected, strict=True)]
    largest = max(differences) if all(map(math.isfinite, found)) else math.inf
    text = f"losses differ by {largest:.1e}, the last is {found[-1]:.4f}"
    return Row(what, text, f"at most {bound:g}", largest <= bound)


def _cells(row):
    return [row.what, row.found, row.bound, "" if row.holds else "<- does not hold"]


if __name__ == "__main__":
    sys.exit(main())
