"""Examines this machine part by part. Nothing here imports TensorFlow into this process."""

import logging
from pathlib import Path
from typing import NamedTuple

from albert_keras.machine.hardware import (
    LEAST_DISK,
    ask_driver,
    disk_finding,
    gpu_finding,
    memory_finding,
    processor_finding,
    read_memory,
)
from albert_keras.machine.packages import (
    FAULT,
    OK,
    Finding,
    keras_findings,
    package_findings,
    python_finding,
)
from albert_keras.machine.probe import Probe, run_probe
from data_pipeline.tensorflow_line import required_line

logger = logging.getLogger(__name__)


class Examination(NamedTuple):
    """What was found, and what was measured."""

    findings: tuple[Finding, ...]
    probe: Probe

    def count(self, state: str) -> int:
        """Returns the number of findings in a state."""
        return sum(finding.state == state for finding in self.findings)


def examine(out: Path = Path("runs"), least_disk: float = LEAST_DISK) -> Examination:
    """Examines packages, processor, memory, disk, GPUs and TensorFlow; takes about 20 seconds.

    Args:
        out: Folder that runs will be written to.
        least_disk: Free bytes that its disk needs.
    """
    findings = [python_finding(), *package_findings(), processor_finding()]
    findings += [memory_finding(read_memory()), disk_finding(out, least_disk)]
    logger.info("starting TensorFlow in another process")
    probe = run_probe()
    findings += keras_findings(probe.keras)
    causes = any(one.state == FAULT and one.topic != "disk" for one in findings)
    findings.append(gpu_finding(ask_driver(), probe.gpus))
    return Examination((*findings, *tensorflow_findings(probe, causes)), probe)


def tensorflow_findings(probe: Probe, is_explained: bool = False) -> list[Finding]:
    """Judges how TensorFlow started; `is_explained` says that other faults may be the reason."""
    found = []
    if probe.error is not None:
        repair = f"pip install --force-reinstall 'tensorflow=={required_line().tensorflow}'"
        fix = "correct the faults above first" if is_explained else repair
        found.append(Finding("TensorFlow", FAULT, f"does not work: {probe.error}", fix))
    else:
        text = f"imported in {probe.seconds:.1f} s; {probe.device}, precision {probe.precision}"
        found.append(Finding("TensorFlow", OK, text))
    if probe.peaks:
        rates = (f"{name} {rate / 1e12:.3g} TFLOP/s" for name, rate in probe.peaks.items())
        found.append(Finding("speed", OK, f"product of matrices: {', '.join(rates)}"))
    return found
