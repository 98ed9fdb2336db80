"""Compiles HLO for TPUs on a machine without one, with the compiler of libtpu.

A script for an environment of its own, with the packages of `requirements.txt`; it imports neither
this project nor TensorFlow, and uses private names of jax 0.5.3.

    python compile_hlo.py step.hlo result.json '{"layout": "v3:2x2", "replicas": 8, "options": {}}'
"""

import json
import os
import re
import sys
import time
from pathlib import Path

#: Keeps libtpu from looking for a TPU and a metadata server, and lets several processes use it.
_ENVIRONMENT = {
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "CLOUD_TPU_TASK_ID": "0",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
    "TPU_MIN_LOG_LEVEL": "3",
    "TPU_STDERR_LOG_LEVEL": "3",
    "TPU_LOG_DIR": "disabled",
}

#: `%name = bf16[32,512]{1,0} convolution(%operand,`, as in the text of a compiled program; a result
#: of several parts has their types in parentheses.
_NAME_AND_TYPE = re.compile(r"\s*(?:ROOT )?%?([\w.\-]+) = \(?(\w+)\[")
_OPERATION = re.compile(r" ([a-z][a-z0-9\-]*)\((?:(\w+)\[[^%]*)?%?([\w.\-]*)")


def main(hlo_path: str, result_path: str, topology: str):
    """Compiles one program, a serialised HloModuleProto for one replica that is not optimised.

    `topology` is a JSON object of `layout`, `replicas` and `options`, see `check.Topology`. The
    result is a JSON object. `outcome` is "compiled", "out of memory" or "failed". If compiled:
    `seconds`, `gib` (arguments + results - what both share + temporary + code, per replica),
    `tflop` per step and replica, `all_reduces` and `products` (by the type of the operands) of the
    compiled program. Else `message`.
    """
    result = compile_program(Path(hlo_path).read_bytes(), **json.loads(topology))
    Path(result_path).write_text(json.dumps(result), encoding="utf-8")


def compile_program(proto: bytes, layout: str, replicas: int, options: dict) -> dict:
    """Compiles one program and returns the result, see `main`."""
    os.environ.update(_ENVIRONMENT)  # before jax and libtpu are loaded
    import numpy as np
    from jax._src import compiler
    from jax._src.interpreters import mlir
    from jax.experimental import topologies
    from jaxlib import xla_client

    text = xla_client._xla.mlir.xla_computation_to_mlir_module(xla_client.XlaComputation(proto))
    with mlir.make_ir_context():
        code = mlir.module_to_bytecode(mlir.ir.Module.parse(text))
    topology = topologies.get_topology_desc(platform="tpu", topology_name=layout, **options)
    devices = list(topology.devices)
    if len(devices) != replicas:
        raise ValueError(f"{layout} has {len(devices)} replicas, not {replicas}")
    compile_options = compiler.get_compile_options(
        num_replicas=replicas,
        num_partitions=1,
        device_assignment=np.array(devices, dtype=object),
        backend=devices[0].client,
    )
    compile_options.executable_build_options.use_spmd_partitioning = False
    started = time.monotonic()
    try:
        executable = devices[0].client.compile(code, compile_options)
    except xla_client.XlaRuntimeError as error:
        return failure(str(error))
    return {
        "outcome": "compiled",
        "seconds": time.monotonic() - started,
        "gib": _memory(executable.get_compiled_memory_stats()) / 2**30,
        "tflop": _cost(executable)["flops"] / 1e12,
        **count_instructions(executable.hlo_modules()[0].to_string()),
    }


def failure(message: str) -> dict:
    """Returns the result, see `main`, for an error of the compiler."""
    if "RESOURCE_EXHAUSTED" not in message:
        return {"outcome": "failed", "message": message[:2000]}
    return {"outcome": "out of memory", "message": message[:2000]}


def count_instructions(text: str) -> dict:
    """Counts products, by the type of their operands, and all-reduces of a compiled program.

    Loops count once, however often they run. `products` is a dict from a type such as "bf16".
    """
    types, products, all_reduces = {}, {}, 0
    for line in text.splitlines():
        head = _NAME_AND_TYPE.match(line)
        operation = head and _OPERATION.search(line, head.end())
        if not operation:
            continue
        types[head[1]] = head[2]
        opcode, written, operand = operation.groups()
        if opcode in ("all-reduce", "all-reduce-start"):
            all_reduces += 1
        elif opcode in ("convolution", "dot"):
            kind = written or types.get(operand, "unknown")
            products[kind] = products.get(kind, 0) + 1
    return {"all_reduces": all_reduces, "products": products}


def _memory(stats):
    return (
        stats.argument_size_in_bytes
        + stats.output_size_in_bytes
        - stats.alias_size_in_bytes
        + stats.temp_size_in_bytes
        + stats.generated_code_size_in_bytes
    )


def _cost(executable):
    cost = executable.cost_analysis()
    return cost[0] if isinstance(cost, list) else cost


if __name__ == "__main__":
    main(*sys.argv[1:])
