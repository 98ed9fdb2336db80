"""`albert-keras serve-check` as a user gives it."""

import json
import subprocess
import sys

from albert_keras.cli import main
from albert_keras.serving import serve_check
from albert_keras.serving.serve_check import GOLDEN_CASES


def test_all_golden_cases_are_answered_as_by_the_model_server(server, capsys):
    assert main(["serve-check", "--rest", server.url, "--model", "books"]) == 0
    methods = "classify", "regress"
    skipped = [one for one in GOLDEN_CASES if one.needs in methods or one.path[1:] in methods]
    asked = len(GOLDEN_CASES) - len(skipped)
    assert asked > 50
    assert capsys.readouterr().out.splitlines() == [
        f"{server.url[:-1]}, books version 3",
        f"golden cases: {asked} of {asked} passed",
        f"skipped: {len(skipped)}, because the server has no classify, regress",
    ]
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
