"""Where tests find the packages, and the mark of those that need more than the packages.

The tests also run against an installed wheel, from a folder that contains nothing else than `tests`
and `pyproject.toml` (`make test-wheel`).
"""

import sys
from pathlib import Path

import pytest

import albert_keras

ROOT = Path(__file__).parents[1]
#: The folder of both packages: the repository, or where a wheel was installed.
PACKAGES = Path(albert_keras.__file__).parents[1]

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: The content of `pyproject.toml`.
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))

needs_repository = pytest.mark.skipif(
    not (ROOT / "CONTRIBUTING.md").is_file(), reason="needs files that only the repository has"
)
