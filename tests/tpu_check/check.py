"""Programs through TensorFlow and through the TPU's compiler, each in a process of its own."""

import hashlib
import json
import logging
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from data_pipeline.errors import InputError
from tests.benchmarks.measure import in_new_process
from tests.tpu_check.program import Program, program_of
from tests.tpu_check.trace import trace_program

logger = logging.getLogger(__name__)

_SCRIPT = Path(__file__).with_name("compile_hlo.py")


class Topology(NamedTuple):
    """One TPU of a single host."""

    layout: str  #: Generation and arrangement of the chips, as libtpu names it.
    #: Of `TPUStrategy`: cores on v2 and v3, whole chips later, where the two cores of a v4 or v5p
    #: act as one.
    replicas: int
    replicas_per_chip: int
    memory_gib: int  #: Memory of a replica. The compiler reserves some of it.
    options: dict = {}  #: Further arguments of jax's `topologies.get_topology_desc`.


#: Named as by Google Cloud; "v5e-8" is called v5litepod-8 there.
TOPOLOGIES = {
    "v2-8": Topology("v2:2x2", 8, 2, 8),
    "v3-8": Topology("v3:2x2", 8, 2, 16),
    "v4-8": Topology("v4:2x2x1", 4, 1, 32, {"chip_config_name": "megacore"}),
    "v5e-8": Topology("v5e:2x4", 8, 1, 16),
    "v5p-8": Topology("v5p:2x2x1", 4, 1, 95),
    "v6e-8": Topology("v6e:2x4", 8, 1, 32),
}


class Checked(NamedTuple):
    """The results of a program on a TPU."""

    program: Program
    topology: str  #: A name of `TOPOLOGIES`.
    traced: dict  #: See `trace_program`.
    compiled: dict | None  #: See `compile_hlo.py`; None if it was not compiled.

    @property
    def faults(self) -> list[str]:
        """What must be repaired; a program that does not fit is not a fault."""
        if self.compiled and self.compiled["outcome"] == "failed":
            return [*self.traced["faults"], self.compiled["message"]]
        return self.traced["faults"]


def check(
    programs: Iterable[dict],
    topologies: Iterable[str],
    out: Path,
    compiler: Path | None = None,
) -> Iterator[Checked]:
    """Checks programs on TPUs; yields each result as soon as it is available.

    Args:
        programs: Fields of Program or, with a `kind`, of TaskProgram, without the fields that
            follow from the TPU. An invalid program raises InputError.
        topologies: Names of `TOPOLOGIES`.
        out: Folder for HLO and results.
        compiler: Python of the environment that compiles; None does not compile.
    """
    out.mkdir(parents=True, exist_ok=True)
    traced = {}
    for fields in programs:
        for name in topologies:
            topology = TOPOLOGIES[name]
            replicas, per_chip = topology.replicas, topology.replicas_per_chip
            program = program_of(fields | {"replicas": replicas, "replicas_per_chip": per_chip})
            key = hashlib.sha256(program.model_dump_json().encode()).hexdigest()[:16]
            if key not in traced:
                traced[key] = _trace(program, out / key)
            compiled = None
            if compiler and not traced[key]["faults"]:
                compiled = _compile(out / key, name, compiler)
            yield Checked(program, name, traced[key], compiled)


def compiler_versions(compiler: str | Path) -> dict[str, str]:
    """Returns the versions of the packages that compile, in the environment of this Python.

    InputError if there is no such Python, or it lacks a package.
    """
    code = (
        "import json; from importlib.metadata import version; "
        "print(json.dumps({name: version(name) for name in ('jax', 'jaxlib', 'libtpu')}))"
    )
    try:
        done = subprocess.run([compiler, "-c", code], capture_output=True, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise InputError(
            "`--compiler` must be a Python with the packages of requirements.txt; `make check-tpu` "
            f"creates one. Received: {compiler}."
        ) from error
    return json.loads(done.stdout)


def _trace(program, path):
    """Traces a program to `path`.hlo; returns its summary, see `trace_program`."""
    logger.info(
        "tracing %s: %d x %d tokens on each of %d replicas",
        ", ".join([program.model["size"], *program.about]),
        program.batch,
        program.sequence_length,
        program.replicas,
    )
    try:
        summary, proto = in_new_process(trace_program, program)
    except Exception as error:  # whatever TensorFlow raises
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        return {"faults": [f"TensorFlow cannot trace or translate the step: {reason}"]}
    if proto is not None:
        path.with_suffix(".hlo").write_bytes(proto)
    return summary


def _compile(path, name, compiler):
    """Compiles `path`.hlo for a TPU; returns the result, see `compile_hlo.py`."""
    logger.info("compiling for %s", name)
    topology = TOPOLOGIES[name]
    target = {"layout": topology.layout, "replicas": topology.replicas, "options": topology.options}
    result_path = path.with_name(f"{path.name}-{name}.json")
    command = [compiler.absolute(), _SCRIPT, path.with_suffix(".hlo"), result_path]
    words = [*map(str, command), json.dumps(target)]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no message"]
        message = f"The compiler failed: exit code {done.returncode}, {lines[-1][:1000]}"
        return {"outcome": "failed", "message": message}
    return json.loads(result_path.read_text(encoding="utf-8"))
