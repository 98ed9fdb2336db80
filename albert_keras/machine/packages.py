"""What the doctor finds, and its checks of Python, the packages and Keras; nothing is imported."""

import os
import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from typing import NamedTuple

from data_pipeline.tensorflow_line import LINES, VARIABLE, Line, required_line

#: States of a finding. Only a fault keeps the program from working.
OK, WARNING, FAULT = "ok", "warning", "fault"
#: How each state is marked at the start of a line.
_MARKS = {OK: "✔", WARNING: "⚠", FAULT: "✘"}
_OURS = "albert-keras"
#: Their versions are always shown.
_SHOWN = (
    *(_OURS, "tensorflow", "keras", "tf-keras", "tensorflow-text", "tensorflow-addons"),
    *("sentencepiece", "numpy", "protobuf"),
)


class Finding(NamedTuple):
    """One property of the machine."""

    topic: str  # one or two words, such as "disk"
    state: str  # OK, WARNING or FAULT
    text: str  # a sentence or a list of facts
    fix: str | None = None  # a command, or what to do; None if there is nothing to fix

    def lines(self) -> list[str]:
        """Returns the finding as text, the fix on a line of its own."""
        shown = [f"{_MARKS[self.state]} {self.topic:<11}  {self.text}"]
        return shown if self.fix is None else [*shown, f"{'':13}  fix: {self.fix}"]


def python_finding(version: tuple[int, ...] = tuple(sys.version_info[:3])) -> Finding:
    """Checks the version of Python."""
    text = f"{'.'.join(map(str, version))}, {sys.executable}"
    if any(version[:2] in line.pythons for line in LINES):
        return Finding("Python", OK, text)
    released = "; ".join(
        f"TensorFlow {line.series} is released for Python "
        + " and ".join(f"{major}.{minor}" for major, minor in line.pythons)
        for line in LINES
    )
    fix = "python3.11 -m venv .venv && .venv/bin/pip install ."
    return Finding("Python", FAULT, f"{text}; {released}", fix)


def package_findings(
    version: Callable[[str], str] = metadata.version,
    requires: Callable[[str], list[str] | None] = metadata.requires,
) -> list[Finding]:
    """Compares the installed packages with what this package and TensorFlow require.

    The arguments return the version and the requirements of a distribution, and raise
    PackageNotFoundError if it is not installed.
    """
    try:
        from packaging.requirements import Requirement
    except ImportError:
        fix = "pip install packaging"
        return [Finding("packages", FAULT, "`packaging`, which TensorFlow needs, is missing", fix)]

    faults: dict[str, Finding] = {}
    for owner in (_OURS, "tensorflow"):
        if _installed(owner, version) is None:
            continue
        for requirement in map(Requirement, requires(owner) or ()):
            name, needed = requirement.name, f"{requirement.name}{requirement.specifier}"
            if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
                continue
            found = _installed(name, version)
            if found is None or not requirement.specifier.contains(found, prereleases=True):
                text = f"{name} {found or 'is not'} installed, and {needed} is required"
                fix = f"pip install '{needed}'"
                faults.setdefault(name, Finding("packages", FAULT, text, fix))
    shown = ((name, _installed(name, version)) for name in _SHOWN)
    listing = ", ".join(f"{name} {found}" for name, found in shown if found)
    findings = [*faults.values()] or [Finding("packages", OK, listing)]
    if _installed(_OURS, version) is None:
        text = "albert-keras is not installed as a package, so its requirements are not known"
        findings.append(Finding("packages", WARNING, text, "pip install ."))
    return findings


def keras_findings(
    loaded: str | None,
    environ: Mapping[str, str] = os.environ,
    line: Line | None = None,
) -> list[Finding]:
    """Checks which Keras TensorFlow loads; it needs Keras 2.

    Args:
        loaded: Version of the Keras that TensorFlow loaded; None if it did not start.
        environ: The environment of the process.
        line: The required versions; None takes those for this Python.
    """
    line, found = line or required_line(), []
    if (backend := environ.get("KERAS_BACKEND", "tensorflow")) != "tensorflow":
        text = f"KERAS_BACKEND={backend} must be tensorflow or not set"
        found.append(Finding("Keras", WARNING, text, "unset KERAS_BACKEND"))
    value = environ.get(VARIABLE)
    if line.keras_package == "keras" and value in ("true", "True", "1"):
        text = f"{VARIABLE}={value} makes TensorFlow load `tf_keras` in place of `keras`"
        found.append(Finding("Keras", FAULT, text, f"unset {VARIABLE}"))
    if loaded is not None and not loaded.startswith(f"{line.series}."):
        text = f"TensorFlow uses Keras {loaded}; it needs Keras {line.series}"
        fix = f"pip install '{line.keras_package}=={line.keras}'"
        found.append(Finding("Keras", FAULT, text, fix))
    elif loaded is not None and not found:
        found.append(Finding("Keras", OK, f"TensorFlow uses {line.keras_package} {loaded}"))
    return found


def _installed(name, version):
    """Returns the version of an installed distribution, or None; `version` finds it."""
    try:
        return version(name)
    except metadata.PackageNotFoundError:
        return None
