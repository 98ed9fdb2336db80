"""Runs a contestant in a fresh process, which ends with this one."""

import json
import logging
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from albert_keras.benchmarks.learning.job import Job, read_points
from data_pipeline.child_processes import code_command, environment, module_command

logger = logging.getLogger(__name__)

#: Names a Python that has PyTorch and transformers, if this one has not.
PYTHON_VARIABLE = "ALBERT_KERAS_TRANSFORMERS_PYTHON"
_POLL_SECONDS = 0.2
_MAX_REASON_LENGTH = 200


def python_for(packages: Sequence[str]) -> str | None:
    """Returns the Python to run a contestant with that needs these packages; None if there is none.

    It is this one, or for PyTorch and transformers the one that `PYTHON_VARIABLE` names.
    """
    python = os.environ.get(PYTHON_VARIABLE) if packages else None
    python = python or sys.executable
    check = (
        "import importlib.util, sys; sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))"
    )
    try:
        found = subprocess.run(
            code_command(check, *packages, python=python),
            env=environment(),
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None
    return python if found.returncode == 0 else None


def run_trainer(module: str, python: str, job: Job, label: str) -> str | None:
    """Runs the trainer in `module` on a job, in the folder of its points.

    What the process prints is kept in `output.log`. An unfinished earlier attempt is removed.

    Returns:
        None, or why the training failed (str).
    """
    points = Path(job.points)
    folder = points.parent
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    described = folder / "job.json"
    described.write_text(json.dumps(job._replace(started=time.time())._asdict()), encoding="utf-8")
    with open(folder / "output.log", "wb") as output:
        process = subprocess.Popen(
            module_command(module, described, python=python),
            stdin=subprocess.PIPE,  # its end ends the process
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment(TF_CPP_MIN_LOG_LEVEL="3", USE_TF="0"),
            start_new_session=True,  # Ctrl-C is for the benchmark
        )
        try:
            _report_until_end(process, points, label)
        finally:
            process.kill()
            process.wait()
            process.stdin.close()
    if read_points(points)[1] is not None:
        return None
    lines = (folder / "output.log").read_text(encoding="utf-8", errors="replace").splitlines()
    reasons = [line.strip() for line in lines if line.strip()]
    reason = reasons[-1] if reasons else f"its process ended with exit code {process.returncode}"
    return f"{reason[:_MAX_REASON_LENGTH]} (see {folder / 'output.log'})"


def _report_until_end(process, path, label):
    """Waits for the end of a process, and logs each new point."""
    known, is_running = 0, True
    while is_running:
        is_running = process.poll() is None
        points, facts = read_points(path)
        for point in points[known:]:
            logger.info(
                "%s: %.2f min, update %s, held-out loss %.3f, accuracy %.1f %%",
                label,
                point["seconds"] / 60,
                f"{point['updates']:,}",
                point["loss"],
                100 * point["accuracy"],
            )
        known = len(points)
        if is_running:
            time.sleep(_POLL_SECONDS)
