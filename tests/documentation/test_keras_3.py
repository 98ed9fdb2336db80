"""The examples of `docs/keras-3.md` run, those whose packages are installed."""

import ast
import importlib.util

import pytest

from tests.documentation.code_blocks import ROOT, blocks_of
from tests.keras_line import IS_KERAS_3

BLOCKS = blocks_of(ROOT / "docs" / "keras-3.md")


@pytest.mark.slow
@pytest.mark.skipif(not IS_KERAS_3, reason="the page is about Keras 3")
@pytest.mark.filterwarnings("ignore")  # of KerasHub and KerasTuner
@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_runs(block, tmp_path, monkeypatch):
    imports = (node for node in ast.walk(ast.parse(block.text)) if isinstance(node, ast.Import))
    for name in (one.name for node in imports for one in node.names):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    monkeypatch.chdir(tmp_path)
    exec(compile(block.text, str(block), "exec"), {"__name__": "__main__"})
