"""Programs through TensorFlow and through the TPU's compiler, each in a process of its own.

In the output folder, `hlo/<digest>.hlo` is what was compiled and `compiled/` the results. A program
with the same HLO is not compiled again.
"""

import hashlib
import json
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from data_pipeline.errors import InputError
from data_pipeline.files import whole_file
from tests.tpu_check.program import Program, program_of

logger = logging.getLogger(__name__)

_SCRIPT = Path(__file__).with_name("compile_hlo.py")
_ROOT = Path(__file__).parents[2]
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
_TIME_LIMIT = 3600  # of a process, in seconds


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
    out = out.resolve()  # the processes start in the repository
    for folder in ("hlo", "compiled"):
        (out / folder).mkdir(parents=True, exist_ok=True)
    traced = {}
    for fields in programs:
        for name in topologies:
            topology = TOPOLOGIES[name]
            replicas, per_chip = topology.replicas, topology.replicas_per_chip
            program = program_of(fields | {"replicas": replicas, "replicas_per_chip": per_chip})
            key = program.model_dump_json()
            if key not in traced:
                traced[key] = _trace(program, out)
            compiled = None
            if compiler and not traced[key]["faults"]:
                compiled = _compile(traced[key]["digest"], name, out, compiler)
            yield Checked(program, name, traced[key], compiled)


def compiler_versions(compiler: str | Path) -> dict[str, str]:
    """Returns the versions of the packages that compile, in the environment of this Python.

    InputError if there is no such Python, or it lacks a package.
    """
    packages = ["jax", "jaxlib", "libtpu"]
    code = (
        "import json; from importlib.metadata import version; "
        f"print(json.dumps({{name: version(name) for name in {packages}}}))"
    )
    try:
        done = subprocess.run(
            [compiler, "-c", code],
            capture_output=True,
            check=True,
            timeout=60,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise InputError(
            f"`--compiler` must be a Python with the packages of {REQUIREMENTS.name}; "
            f"`make check-tpu` creates one. Received: {compiler}."
        ) from error
    return json.loads(done.stdout)


def _trace(program, out):
    logger.info(
        "tracing %s: %d x %d tokens on each of %d replicas",
        ", ".join([program.model["size"], *program.about]),
        program.batch,
        program.sequence_length,
        program.replicas,
    )
    with tempfile.TemporaryDirectory(dir=out) as folder:
        summary_path, hlo_path = Path(folder, "summary.json"), Path(folder, "step.hlo")
        settings = program.model_dump_json(exclude_unset=True)
        command = [sys.executable, "-m", "tests.tpu_check.trace", settings]
        changes = {
            "CUDA_VISIBLE_DEVICES": "",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "PYTHONHASHSEED": "0",  # so that equal programs have equal HLO
        }
        failure = _run([*command, summary_path, hlo_path], changes)
        if failure:
            return {"faults": [f"TensorFlow cannot trace or translate the step: {failure}"]}
        summary = json.loads(summary_path.read_text(encoding="utf-8"))
        if "error" in summary:
            raise InputError(summary["error"])
        if hlo_path.exists():
            os.replace(hlo_path, out / "hlo" / f"{summary['digest']}.hlo")
        return summary


def _compile(digest, name, out, compiler):
    tools = hashlib.sha256(_SCRIPT.read_bytes() + REQUIREMENTS.read_bytes()).hexdigest()[:8]
    known = out / "compiled" / f"{digest}-{name}-{tools}.json"
    if known.exists():
        return json.loads(known.read_text(encoding="utf-8"))
    logger.info("compiling for %s", name)
    topology = TOPOLOGIES[name]
    target = {"layout": topology.layout, "replicas": topology.replicas, "options": topology.options}
    with tempfile.TemporaryDirectory(dir=out) as folder:
        path = Path(folder, "result.json")
        hlo_path = out / "hlo" / f"{digest}.hlo"
        failure = _run([compiler.absolute(), _SCRIPT, hlo_path, path, json.dumps(target)], {})
        if failure:
            return {"outcome": "failed", "message": f"The compiler failed: {failure}"}
        result = json.loads(path.read_text(encoding="utf-8"))
    if result["outcome"] != "failed":
        with whole_file(known) as temporary:
            temporary.write_text(json.dumps(result), encoding="utf-8")
    return result


def _run(command, changes) -> str | None:
    """Runs a process to its end; returns the end of its errors, or None if it succeeded."""
    try:
        done = subprocess.run(
            [str(part) for part in command],
            env=os.environ | changes,
            cwd=_ROOT,
            capture_output=True,
            text=True,
            timeout=_TIME_LIMIT,
        )
    except subprocess.TimeoutExpired:
        return f"it took longer than {_TIME_LIMIT} s"
    if done.returncode == 0:
        return None
    lines = done.stderr.strip().splitlines() or ["no message"]
    return f"exit code {done.returncode}, {lines[-1][:1000]}"
