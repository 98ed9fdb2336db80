"""Public names of a package that are loaded at first use."""

import ast
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def attach(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Finds the public names of a package: those that it imports for type checkers.

    Args:
        package: `__name__` of the package.
        file: Its `__file__`.

    Returns:
        Its `__getattr__`, which imports the module of a name, its `__dir__` and its `__all__`.
    """
    tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    homes = {alias.asname: one.module for one in imports for alias in one.names if alias.asname}

    def load(name):
        if name == "__version__":
            return program_version()
        if name not in homes:
            raise AttributeError(f"module `{package}` has no attribute `{name}`")
        return getattr(importlib.import_module(homes[name]), name)

    return load, lambda: [*vars(sys.modules[package]), *homes], sorted(homes)


def program_version() -> str:
    """Returns the version of this program, or "unknown" in a checkout that is not installed."""
    from importlib import metadata

    try:
        return metadata.version("albert-keras")
    except metadata.PackageNotFoundError:
        return "unknown"
