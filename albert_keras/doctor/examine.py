"""Examines this machine part by part. Nothing here imports TensorFlow into this process."""

import logging
from pathlib import Path
from typing import NamedTuple

from albert_keras.doctor.findings import FAULT, OK, WARNING, Finding
from albert_keras.doctor.graphics import ask_driver, gpu_finding, has_gpu
from albert_keras.doctor.keras_choice import is_keras_of, keras_command, keras_findings
from albert_keras.doctor.machine import (
    LEAST_DISK,
    disk_finding,
    memory_finding,
    processor_finding,
    read_memory,
)
from albert_keras.doctor.packages import package_findings, python_finding
from albert_keras.doctor.probe import Probe, run_probe
from data_pipeline.tensorflow_line import Line, required_line

logger = logging.getLogger(__name__)

#: Topics whose faults may keep TensorFlow from starting.
_CAUSES = ("Python", "packages", "Keras", "processor", "memory")


class Examination(NamedTuple):
    """What was found, and what was measured."""

    findings: tuple[Finding, ...]
    probe: Probe

    def count(self, state: str) -> int:
        """Returns the number of findings in a state."""
        return sum(finding.state == state for finding in self.findings)

    @property
    def has_faults(self) -> bool:
        """Whether something keeps the program from working."""
        return self.count(FAULT) > 0


def examine(out: Path = Path("runs"), least_disk: float = LEAST_DISK) -> Examination:
    """Examines packages, processor, memory, disk, GPUs and TensorFlow; takes about 20 seconds.

    Args:
        out: Folder that runs will be written to.
        least_disk: Free bytes that its disk needs.
    """
    findings = [python_finding(), *package_findings(), *keras_findings()]
    findings += [processor_finding(), memory_finding(read_memory()), disk_finding(out, least_disk)]
    logger.info("starting TensorFlow in another process, without network")
    probe = run_probe()
    findings.append(gpu_finding(ask_driver(), has_gpu(), probe.gpus))
    return Examination((*findings, *tensorflow_findings(probe, findings)), probe)


def tensorflow_findings(
    probe: Probe, others: list[Finding], line: Line | None = None
) -> list[Finding]:
    """Judges how TensorFlow started, given the findings about what it needs.

    `line` has the required versions; by default it is the line for this Python.
    """
    line = line or required_line()
    found = []
    if probe.error is not None:
        is_explained = any(one.state == FAULT and one.topic in _CAUSES for one in others)
        repair = f"pip install --force-reinstall 'tensorflow=={line.tensorflow}'"
        fix = "correct the faults above first" if is_explained else repair
        found.append(Finding("TensorFlow", FAULT, f"does not work: {probe.error}", fix))
    else:
        text = f"imported in {probe.seconds:.1f} s; {probe.device}, precision {probe.precision}"
        found.append(Finding("TensorFlow", OK, text))
    if probe.keras is not None and not is_keras_of(line, probe.keras):
        text = f"TensorFlow uses Keras {probe.keras}; it needs Keras {line.series}"
        found.append(Finding("Keras", FAULT, text, keras_command(line)))
    if probe.peaks:
        rates = (f"{name} {rate / 1e12:.3g} TFLOP/s" for name, rate in probe.peaks.items())
        found.append(Finding("speed", OK, f"product of matrices: {', '.join(rates)}"))
    if probe.network:
        text = f"tried to connect to {', '.join(sorted(set(probe.network)))}"
        fix = (
            "to work offline, unset the variables that name these hosts, such as TPU_NAME or a "
            "proxy"
        )
        found.append(Finding("offline", WARNING, text, fix))
    elif probe.network is not None:
        found.append(Finding("offline", OK, "everything was loaded without network"))
    return found
