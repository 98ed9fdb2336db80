"""The code blocks of the pages run, in order, in one folder with small inputs."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.documentation.code_blocks import PAGES as ALL_PAGES, ROOT
from tests.documentation.inputs import write_inputs

#: In the order in which they run: later pages use what earlier ones leave in the folder. The README
#: leaves a run with rotary positions, which the formats of others cannot store.
FIRST = ["own-language", "own-domain", "task-to-server", "tpu-vm", "several-gpus", "beam"]
PAGES = [
    *[f"docs/tutorials/{name}.md" for name in FIRST],
    *[
        f"docs/{name}.md"
        for name in ("data", "commands", "finetuning", "serving", "interop", "coming-from")
    ],
]
_OTHERS = [str(page.relative_to(ROOT)) for page in ALL_PAGES]
PAGES += [name for name in _OTHERS if name not in PAGES]
#: Runs of a page that no page makes → the runs of which they are copies.
_COPIES = {
    "README.md": {"runs/demo/run": "runs/books"},
    "docs/commands.md": {"runs/a": "runs/books", "runs/b": "runs/books"},
    "docs/serving.md": {"runs/sst-2": "runs/mail"},
}


@pytest.fixture(scope="module")
def workspace(tiny_corpus, tmp_path_factory):
    """Returns the folder in which the pages run, one after the other."""
    folder = tmp_path_factory.mktemp("pages")
    write_inputs(folder, tiny_corpus)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs(page, workspace):
    for name, source in _COPIES.get(page, {}).items():
        shutil.copytree(workspace / source, workspace / name)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    program = [sys.executable, "-m", "tests.documentation.page_program", str(ROOT / page)]
    done = subprocess.run(
        program, cwd=workspace, env=environment, capture_output=True, text=True, timeout=3600
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
