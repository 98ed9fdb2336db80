"""Checks the versions of Python and of the installed packages, without importing any of them."""

import sys
from collections.abc import Callable
from importlib import metadata

from albert_keras.doctor.findings import FAULT, OK, WARNING, Finding
from data_pipeline.tensorflow_line import LINES

_OURS = "albert-keras"
#: Their versions are always shown.
_SHOWN = (
    "tensorflow",
    "keras",
    "tf-keras",
    "tensorflow-text",
    "tensorflow-addons",
    "sentencepiece",
    "numpy",
    "protobuf",
)


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
    return Finding(
        "Python",
        FAULT,
        f"{text}; {released}",
        "python3.11 -m venv .venv && .venv/bin/pip install .",
    )


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

    shown = [
        f"{name} {found}"
        for name in (_OURS, *_SHOWN)
        if (found := installed_version(name, version))
    ]
    wrong, missing, extras = {}, {}, {}
    for owner in (_OURS, "tensorflow"):
        if installed_version(owner, version) is None:
            continue
        for requirement in map(Requirement, requires(owner) or ()):
            needed = f"{requirement.name}{requirement.specifier}"
            found = installed_version(requirement.name, version)
            if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
                extra = _extra_of(requirement) if owner == _OURS else None
                if extra and found is None:
                    extras.setdefault(extra, []).append(requirement.name)
            elif found is None:
                missing.setdefault(requirement.name, needed)
            elif not requirement.specifier.contains(found, prereleases=True):
                wrong.setdefault(requirement.name, (found, needed))
    state = FAULT if wrong or missing else OK
    findings = [Finding("packages", OK, ", ".join(shown))] if state == OK else []
    for name, (found, needed) in wrong.items():
        text = f"{name} {found} is installed, and {needed} is required"
        findings.append(Finding("packages", FAULT, text, f"pip install '{needed}'"))
    for name, needed in missing.items():
        text = f"{name} is not installed"
        findings.append(Finding("packages", FAULT, text, f"pip install '{needed}'"))
    if installed_version(_OURS, version) is None:
        text = "albert-keras is not installed as a package, so its requirements are not known"
        findings.append(Finding("packages", WARNING, text, "pip install ."))
    if extras:
        listing = "; ".join(f"[{extra}]: {', '.join(names)}" for extra, names in extras.items())
        hint = f"pip install 'albert-keras[{next(iter(extras))}]'"
        findings.append(Finding("extras", OK, f"not installed, by extra: {listing} ({hint})"))
    return findings


def installed_version(name: str, version: Callable[[str], str] = metadata.version) -> str | None:
    """Returns the version of an installed distribution, or None; `version` finds it."""
    try:
        return version(name)
    except metadata.PackageNotFoundError:
        return None


def _extra_of(requirement):
    """Returns the extra that a requirement belongs to, or None."""
    marker = str(requirement.marker)
    return marker.split('"')[1] if marker.startswith('extra == "') else None
