"""Time of a training step by operation, from TensorFlow's profiler."""

import collections
import tempfile
from pathlib import Path

from albert_keras.benchmarks.measure import in_new_process, machine
from albert_keras.benchmarks.report import machine_lines, table
from albert_keras.benchmarks.shapes import make_shape
from albert_keras.benchmarks.trainers import prepare_ours

#: Group -> types of operations, as they are named after TensorFlow has rewritten a graph for CPUs.
GROUPS = {
    "products": ("MatMul", "BatchMatMul", "FusedMatMul"),
    "kernels compiled by XLA": ("XlaLaunch",),
    "transposing and copying": ("Transpose", "Concat", "Split", "Pack", "Slice", "Gather"),
    "casts": ("Cast",),
    "sums": ("AddN", "BiasAddGrad", "Sum", "L2Loss", "Mean", "UnsortedSegmentSum"),
}
_REST = "other element-wise"
#: The event of an asynchronous operation: in our step, of a kernel that XLA compiled.
_ASYNCHRONOUS, _KERNEL = "ExecutorState::ProcessAsync::Start", "XlaLaunch"
_WARM_UP = 3


def benchmark_profile(
    model: str = "albert-base",
    batch_size: int = 8,
    max_seq_length: int = 128,
    precision: str = "auto",
) -> dict:
    """Profiles one step of ours in a process of its own; see `make_shape` and `TrainingConfig`.

    Returns:
        dict for JSON: `machine`; `settings`; `operations`, a list of (type, milliseconds, number),
        the longest first. Operations run in parallel: their times are thread times and add up to
        more than the step takes.
    """
    facts = machine()
    shape = make_shape(model, batch_size, max_seq_length)
    operations, _ = in_new_process(_profile, shape, precision)
    settings = {"model": model, "batch_size": batch_size, "max_seq_length": max_seq_length}
    return {
        "machine": facts,
        "settings": settings | {"precision": precision},
        "operations": operations,
    }


def profile_lines(result, longest=15):
    """Yields the lines of the result of `benchmark_profile`."""
    settings = result["settings"]
    yield from machine_lines(result["machine"])
    yield (
        f"one step of {settings['model']}, B = {settings['batch_size']}, "
        f"S = {settings['max_seq_length']}, {settings['precision']}: time of all threads"
    )
    operations = result["operations"]
    total = sum(milliseconds for _, milliseconds, _ in operations)
    groups = collections.Counter()
    for kind, milliseconds, _ in operations:
        groups[group_of(kind)] += milliseconds
    yield ""
    yield from table(
        ["", "ms", "share"],
        [[name, f"{time:,.1f}", f"{time / total:.1%}"] for name, time in groups.most_common()],
    )
    yield ""
    yield from table(
        ["", "ms", "share", "number"],
        [
            [kind, f"{time:,.1f}", f"{time / total:.1%}", str(number)]
            for kind, time, number in operations[:longest]
        ],
    )


def group_of(kind: str) -> str:
    """Returns the key of `GROUPS` that a type of operation belongs to, or "other element-wise"."""
    name = kind.removeprefix("_Mkl").removeprefix("Native").removesuffix("V2")
    for group, kinds in GROUPS.items():
        if name.startswith(kinds):
            return group
    return _REST


def _profile(shape, precision):
    import tensorflow as tf
    from tensorflow.core.profiler.protobuf import xplane_pb2

    run = prepare_ours(shape, precision).run
    for _ in range(_WARM_UP):
        run()
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            run()
        (file,) = Path(folder).rglob("*.xplane.pb")
        space = xplane_pb2.XSpace.FromString(file.read_bytes())
    times, numbers = collections.Counter(), collections.Counter()
    for plane in space.planes:
        for line in plane.lines:
            for event in line.events:
                if kind := _type_of(plane.event_metadata[event.metadata_id].name):
                    times[kind] += event.duration_ps / 1e9
                    numbers[kind] += 1
    return [(kind, time, numbers[kind]) for kind, time in times.most_common()]


def _type_of(event: str) -> str | None:
    """Returns the type of an event's operation; None for events of what runs operations."""
    if event == _ASYNCHRONOUS:
        return _KERNEL
    name, colon, kind = event.rpartition(":")
    return kind if colon and not name.endswith(":") and kind.isidentifier() else None
