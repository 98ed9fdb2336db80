"""`albert-keras serve-check` as a user gives it."""

import json
import subprocess
import sys

import pytest
import tensorflow as tf

from albert_keras.cli import main
from albert_keras.serving import serve_check
from albert_keras.serving.graph.string_tasks import build_task_model
from albert_keras.serving.rest_client import Signature
from albert_keras.serving.serve_check import GOLDEN_CASES, applies, names_of
from tests.albert_keras.serving.small_exports import make_model
from tests.albert_keras.tasks.small_tasks import SETTINGS, make_task


def test_the_result_is_printed(server, capsys):
    assert main(["serve-check", "--rest", server.url, "--model", "books"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"{server.url[:-1]}, books version 3"
    assert lines[1].startswith("golden cases: ") and lines[2].startswith("skipped: ")
    assert main(["serve-check", "--rest", server.url, "--model", "books", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["ok"] and result["version"] == 3
    assert [case["name"] for case in result["cases"]] == [case.name for case in GOLDEN_CASES]


def test_a_wrong_answer_has_an_exit_code_and_is_reported(server, capsys, monkeypatch):
    wrong = serve_check.GOLDEN_CASES[0]._replace(name="wrong", status=404)
    monkeypatch.setattr(serve_check, "GOLDEN_CASES", (wrong,))
    assert main(["serve-check", "--rest", server.url, "--model", "books"]) == 4
    assert "failed: wrong: expected status 404, received 200" in capsys.readouterr().out


def test_it_loads_no_tensorflow(server):
    program = (
        "import sys; from albert_keras.cli import main; words = ['--rest', sys.argv[1]]; "
        "assert main(['serve-check', '--model', 'books', *words]) == 0; "
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, server.url], check=True, capture_output=True)


@pytest.mark.parametrize("kind", SETTINGS)
def test_an_export_of_every_kind_is_checked_by_forty_cases_or_more(kind, tiny_tokenizer):
    task = make_task(kind)
    module = build_task_model(make_model(task, tiny_tokenizer), tiny_tokenizer, task)
    signatures = {}
    for name, function in (module.functions | module.token_functions).items():
        inputs = {
            spec.name: ("DT_STRING" if spec.dtype == tf.string else "DT_INT32", spec.shape)
            for spec in function.input_signature
        }
        inputs = {key: (dtype, (-1,) * shape.rank) for key, (dtype, shape) in inputs.items()}
        method = name if name in ("classify", "regress") else "predict"
        signatures[name] = Signature(method, inputs, {"one": None, "two": None})
    names = names_of(signatures)
    assert sum(applies(case, names) for case in GOLDEN_CASES) >= 40
