"""Puts the trained models of `saved_models/` into wheels.

setuptools takes data from within a package only; the models are exports like any other, in the
folder that the documentation names. An editable installation finds them in the repository.
`pyproject.toml` names the class; it runs where no dependency of the package is installed.
"""

import shutil
from pathlib import Path

from setuptools.command.build_py import build_py

#: As `SHIPPED_MODELS` of `shipped_models.py`.
_MODELS = ("albert-mini-en",)


class BuildWithModels(build_py):
    """Builds the package with copies of the models."""

    def run(self):
        super().run()
        if self.editable_mode:
            return
        for name in _MODELS:
            source = Path("saved_models") / name
            target = Path(self.build_lib) / "albert_keras" / source
            shutil.rmtree(target, ignore_errors=True)
            if source.is_dir():
                shutil.copytree(source, target)
