"""The tests of this folder read pages that only the repository has, not an installed package."""

from pathlib import Path

if not (Path(__file__).parents[2] / "CONTRIBUTING.md").is_file():
    collect_ignore_glob = ["test_*.py"]
