"""The code blocks of the pages run, in order, in one folder with small inputs; and the notebook."""

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.documentation.code_blocks import PAGES as ALL_PAGES, ROOT, blocks_of
from tests.documentation.inputs import write_inputs
from tests.keras_line import IS_KERAS_3

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
#: What a newcomer waits for is made small.
_SMALL_NOTEBOOK = {
    "list(demo_documents())": "list(demo_documents())[::6]",
    "MINUTES = 3": "MINUTES = 0.1",
    "size=4000": "size=1000",
    '"steps": 2400': '"steps": 20',
    '"warmup_steps": 50': '"warmup_steps": 2',
    "// 2000": "// 200",
}


@pytest.fixture(scope="module")
def workspace(tiny_corpus, tmp_path_factory):
    """Returns the folder in which the pages run, one after the other."""
    folder = tmp_path_factory.mktemp("pages")
    write_inputs(folder, tiny_corpus)
    return folder


def run(folder, *words):
    """Runs Python in a folder; returns what it prints."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    program = [sys.executable, *words]
    done = subprocess.run(
        program, cwd=folder, env=environment, capture_output=True, text=True, timeout=3600
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs(page, workspace):
    for name, source in _COPIES.get(page, {}).items():
        shutil.copytree(workspace / source, workspace / name)
    run(workspace, "-m", "tests.documentation.page_program", str(ROOT / page))


@pytest.mark.slow
@pytest.mark.skipif(not IS_KERAS_3, reason="the page is about Keras 3")
@pytest.mark.filterwarnings("ignore")  # of KerasHub and KerasTuner
@pytest.mark.parametrize("block", blocks_of(ROOT / "docs" / "keras-3.md"), ids=str)
def test_a_block_about_keras_3_runs(block, tmp_path, monkeypatch):
    imports = (node for node in ast.walk(ast.parse(block.text)) if isinstance(node, ast.Import))
    for name in (one.name for node in imports for one in node.names):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    monkeypatch.chdir(tmp_path)
    exec(compile(block.text, str(block), "exec"), {"__name__": "__main__"})


@pytest.fixture(scope="module")
def notebook():
    """Returns the program of the notebook, whose cells must have no outputs."""
    path = ROOT / "docs" / "tutorials" / "first-model.ipynb"
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    cells = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(cells) > 8
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells)
    return "\n".join("".join(cell["source"]) for cell in cells)


def test_the_notebook_is_python(notebook):
    compile(notebook, "notebook", "exec")


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(notebook, tmp_path):
    for text, small in _SMALL_NOTEBOOK.items():
        assert text in notebook
        notebook = notebook.replace(text, small)
    (tmp_path / "notebook.py").write_text(notebook, encoding="utf-8")
    assert "bag of words" in run(tmp_path, "notebook.py")
