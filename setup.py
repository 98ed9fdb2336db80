"""Copies the trained models of `saved_models/` into wheels; all else is in `pyproject.toml`.

setuptools takes data from within a package only, and the models are exports like any other, in
the folder that the documentation names. An editable installation finds them there.
"""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

#: As `SHIPPED_MODELS` of `albert_keras/shipped_models.py`.
_MODELS = ("albert-mini-en",)


class BuildWithModels(build_py):
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


setup(cmdclass={"build_py": BuildWithModels})
