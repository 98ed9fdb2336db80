"""`requirements.txt` pins each package with the hashes of its files, and names no index."""

import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_ROOT = Path(__file__).parents[1]


def _entries():
    """Returns the lines of each package: the pin with its markers, and the hashes."""
    text = (_ROOT / "requirements.txt").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [line for line in joined.split("\n") if line.strip()]


def test_each_package_is_pinned_with_hashes():
    entries = _entries()
    assert len(entries) > 100
    for entry in entries:
        assert re.match(r"[a-z0-9-]+==\S+ .*?(--hash=sha256:[0-9a-f]{64}\s*)+$", entry), entry
        assert "://" not in entry and " @ " not in entry


def test_all_dependencies_are_pinned():
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    pinned = {entry.split("==")[0] for entry in _entries()}
    names = {re.match(r"[A-Za-z0-9_.-]+", one)[0].lower().replace("_", "-") for one in needed}
    assert names <= pinned


def test_setup_requires_the_hashes():
    assert "--require-hashes -r requirements.txt" in (_ROOT / "Makefile").read_text()
