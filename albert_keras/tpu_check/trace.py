"""One program, in a process of its own: traces it, checks its operations, lowers it to HLO.

A process divides its devices once, so it has one number of replicas.

    python -m albert_keras.tpu_check.trace '{"batch": 32}' out.json out.hlo
"""

import json
import sys
from pathlib import Path

from albert_keras.tpu_check.cluster import trace_cluster
from albert_keras.tpu_check.fake_strategy import fake_tpu_strategy
from albert_keras.tpu_check.kernels import find_faults, read_kernels
from albert_keras.tpu_check.lowering import lower
from albert_keras.tpu_check.task_program import program_of
from data_pipeline.errors import InputError


def trace_program(program):
    """Takes a program as far as TensorFlow takes it.

    Call it in a fresh process, see `fake_tpu_strategy`.

    Args:
        program: Program or TaskProgram.

    Returns:
        tuple. dict with `operations`, the number of different ones, `faults`, a list of str, and
        the fields of Lowered but for `proto`, if it could be lowered; and the HLO, bytes or None.
    """
    program.config()  # refuses what is not valid before anything is built
    strategy = fake_tpu_strategy(program.replicas, program.replicas_per_chip)
    with strategy.scope():
        function = program.replica_function()
    summary, proto = check_step(strategy, function, program.features())
    if program.recompute and proto is not None and not summary["barriers"]:
        summary["faults"].append(
            "`recompute` has no effect: without an XlaOptimizationBarrier the compiler merges what "
            "is computed twice, and keeps it in memory"
        )
    return summary, proto


def check_step(strategy, replica_step, features):
    """Does the same for any function of a replica; arguments as of `trace_cluster`."""
    cluster = trace_cluster(strategy, replica_step, features)
    operations, faults = find_faults(cluster.graph, read_kernels())
    summary = {"operations": operations, "faults": [str(fault) for fault in faults]}
    if faults:
        return summary, None
    lowered = lower(cluster, strategy.num_replicas_in_sync)._asdict()
    proto = lowered.pop("proto")
    if lowered["dynamic_shapes"]:
        summary["faults"].append(f"{lowered['dynamic_shapes']} instructions have no fixed shape")
    return summary | lowered, proto


def main(settings, summary_path, hlo_path):
    """Writes the summary and the HLO of a program.

    Args:
        settings: str. JSON of the fields of a program.
        summary_path: str. For the dict of `trace_program`, as JSON; or for `{"error": ...}` if
            the settings are not valid.
        hlo_path: str. For the HLO, if there is any.
    """
    try:
        summary, proto = trace_program(program_of(json.loads(settings)))
    except InputError as error:
        summary, proto = {"error": str(error)}, None
    if proto is not None:
        Path(hlo_path).write_bytes(proto)
    Path(summary_path).write_text(json.dumps(summary), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
