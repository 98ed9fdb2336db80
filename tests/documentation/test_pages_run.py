"""The code blocks of the pages run, in order, in one folder with small inputs."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.documentation.code_blocks import ROOT
from tests.documentation.inputs import write_inputs
from tests.documentation.page_program import small

#: In the order in which they run: later pages use what the first three leave in the folder.
PAGES = (
    "docs/tutorials/own-language.md",
    "docs/tutorials/own-domain.md",
    "docs/tutorials/task-to-server.md",
    "docs/tutorials/tpu-vm.md",
    "docs/tutorials/several-gpus.md",
    "docs/tutorials/beam.md",
    "README.md",
)


@pytest.mark.parametrize(
    "words, expected",
    [
        ("pretrain --data r --steps 9000 --out o", "--data r --steps 4 --out o --batch-size 4"),
        ("data build --corpus c", "build --corpus c --max-seq-length 48"),
        ("finetune --epochs 3", "finetune --epochs 1 --max-seq-length 32"),
        ("predict runs/x --set a=1", "predict runs/x --set a=1"),
    ],
)
def test_commands_are_made_small(words, expected):
    assert " ".join(small(words.split())).endswith(expected)


@pytest.fixture(scope="module")
def workspace(tiny_corpus, tmp_path_factory):
    """Returns the folder in which the pages run, one after the other."""
    folder = tmp_path_factory.mktemp("pages")
    write_inputs(folder, tiny_corpus)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs(page, workspace):
    if page == "README.md":  # `make demo` would train for minutes
        (workspace / "runs" / "demo").mkdir()
        shutil.copytree(workspace / "runs" / "books", workspace / "runs" / "demo" / "run")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    program = [sys.executable, "-m", "tests.documentation.page_program", str(ROOT / page)]
    done = subprocess.run(
        program, cwd=workspace, env=environment, capture_output=True, text=True, timeout=3600
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
