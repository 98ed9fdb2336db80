"""Puts the trained models of `saved_models/` into wheels, and the tests into source archives.

setuptools takes data from within a package only; the models are exports like any other, in the
folder that the documentation names. An editable installation finds them in the repository.
`pyproject.toml` names the classes; they run where no dependency of the package is installed.
"""

import shutil
from pathlib import Path

from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

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

    def get_source_files(self):
        folders = [Path("saved_models") / name for name in _MODELS]
        files = [str(file) for folder in folders for file in folder.rglob("*") if file.is_file()]
        return super().get_source_files() + sorted(files)


class SourceArchive(sdist):
    """Archives everything that building, testing and reading about the package needs."""

    def make_distribution(self):
        for folder in ("tests", "docs"):
            self.filelist.graft(folder)
        for name in ("CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "requirements.txt"):
            self.filelist.include(name)
        self.filelist.global_exclude("*.py[cod]")
        self.filelist.remove_duplicates()
        super().make_distribution()
