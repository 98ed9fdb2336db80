"""The notebook of the tutorials: without outputs, and it runs from top to bottom."""

import json
import os
import subprocess
import sys

import pytest

from tests.documentation.code_blocks import ROOT

NOTEBOOK = ROOT / "docs" / "tutorials" / "first-model.ipynb"
#: What a newcomer waits for is made small.
_SMALL = {
    "list(demo_documents())": "list(demo_documents())[::6]",
    "MINUTES = 3": "MINUTES = 0.1",
    "size=4000": "size=1000",
    '"steps": 2400': '"steps": 20',
    '"warmup_steps": 50': '"warmup_steps": 2',
    "// 2000": "// 200",
}


def code_cells():
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_the_notebook_is_python_without_outputs():
    cells = code_cells()
    assert len(cells) > 8
    for cell in cells:
        assert cell["outputs"] == [] and cell["execution_count"] is None
        compile("".join(cell["source"]), cell["id"], "exec")


@pytest.mark.slow
def test_the_notebook_runs_from_top_to_bottom(tmp_path):
    program = "\n".join("".join(cell["source"]) for cell in code_cells())
    for text, small in _SMALL.items():
        assert text in program
        program = program.replace(text, small)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    (tmp_path / "notebook.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "notebook.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "bag of words" in done.stdout
