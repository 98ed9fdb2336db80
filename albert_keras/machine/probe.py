"""Starts TensorFlow in a process of its own, which may fail in any way, and measures there.

The process prints a line of JSON after each part, so that what it did before it died is known.
"""

import importlib
import json
import signal
import subprocess
import sys
import time
from typing import Any, NamedTuple

from data_pipeline.child_processes import code_command

_PRECISIONS = ("float32", "bfloat16")
_SECONDS_PER_PRECISION = 0.5
#: Everything a user does starts with one of these.
_MODULES = (
    "tensorflow_text",
    "albert_keras.training.pretrain",
    "albert_keras.tasks.finetune",
    "albert_keras.serving.predictor",
)


class Probe(NamedTuple):
    """What TensorFlow is on this machine; parts that were not reached are empty."""

    keras: str | None = None  # version of the Keras that TensorFlow loaded
    device: str | None = None  # such as "CPU with 8 cores"
    gpus: int | None = None  # number of GPUs that TensorFlow can use
    precision: str | None = None  # what `--precision auto` means
    peaks: dict[str, float] = {}  # operations per second by dtype; empty on a TPU
    seconds: float = 0.0  # until TensorFlow was imported
    error: str | None = None  # why it failed; None if it did not


def run_probe(path: list[str] | None = None, timeout: float = 300) -> Probe:
    """Runs the examination in a process of its own.

    Args:
        path: Where Python looks for modules; None is as in this process.
        timeout: Seconds after which it is ended.
    """
    path = sys.path if path is None else path
    code = f"sys.path[:] = {path!r}; from {__name__} import main; main()"
    try:
        done = subprocess.run(code_command(code), capture_output=True, timeout=timeout)
    except subprocess.TimeoutExpired as error:
        return _read(error.stdout or b"")._replace(error=f"no result within {timeout:g} s")
    probe = _read(done.stdout)
    if probe.error is None and done.returncode != 0:
        return probe._replace(error=_reason(done.returncode, done.stderr))
    return probe


def main() -> None:
    """Examines this process, in which nothing is imported yet, and prints the results."""
    try:
        _examine()
    except Exception as error:
        _print(error=f"{type(error).__name__}: {error}".splitlines()[0])


def _examine():
    started = time.perf_counter()
    import tensorflow as tf

    _print(seconds=time.perf_counter() - started)
    import keras

    _print(keras=keras.__version__)
    _print(gpus=len(tf.config.list_physical_devices("GPU")))
    for module in _MODULES:
        importlib.import_module(module)
    from albert_keras.training.peak import measure_peak
    from albert_keras.training.strategy import (
        build_strategy,
        choose_precision,
        describe_devices,
    )

    strategy = build_strategy()
    _print(device=describe_devices(strategy), precision=choose_precision(strategy))
    peaks = {name: measure_peak(name, _SECONDS_PER_PRECISION) for name in _PRECISIONS}
    _print(peaks={name: rate for name, rate in peaks.items() if rate is not None})


def _print(**values: Any):
    sys.stdout.write(json.dumps(values) + "\n")
    sys.stdout.flush()


def _read(output: bytes) -> Probe:
    values: dict[str, Any] = {}
    for line in output.decode(errors="replace").splitlines():
        try:
            values |= json.loads(line)
        except (ValueError, TypeError):  # a line of another library, or an incomplete one
            continue
    return Probe(**{name: value for name, value in values.items() if name in Probe._fields})


def _reason(code, stderr):
    if code < 0:
        name = signal.Signals(-code).name
        return f"the process was ended by {name}" + (
            ": the processor lacks instructions that TensorFlow uses" if name == "SIGILL" else ""
        )
    lines = [line for line in stderr.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else f"exit code {code}"
