import json
import logging
import os
import sys

import pytest

from data_pipeline.errors import InputError
from tests.tpu_check import __main__ as command, check as module
from tests.tpu_check.check import Checked, check, compiler_versions
from tests.tpu_check.program import Program
from tests.tpu_check.report import fault_lines, table

TRACED = {"faults": [], "digest": "d1", "all_reduces": 48}
COMPILED = {
    "outcome": "compiled",
    "seconds": 65.2,
    "gib": 8.117,
    "tflop": 9.432,
    "all_reduces": 3,
    "products": {"bf16": 303, "f32": 2},
}
TOO_LARGE = {"outcome": "out of memory", "message": "", "used_gib": 19.5, "available_gib": 15.48}


@pytest.fixture
def compiler(tmp_path, monkeypatch):
    """Returns a stand-in for the Python that compiles; it keeps a list of its calls."""
    path = tmp_path / "python"
    path.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\n"
        "open(sys.argv[0] + '.calls', 'a').write(json.loads(sys.argv[4])['layout'] + '\\n')\n"
        f"open(sys.argv[3], 'w').write({json.dumps(json.dumps(COMPILED))})\n"
    )
    os.chmod(path, 0o755)
    monkeypatch.setattr(module, "_trace", lambda program, out: dict(TRACED))
    return path


def test_equal_programs_are_compiled_once(compiler, tmp_path):
    for _ in range(2):
        results = list(check([{"batch": 8}], ["v2-8", "v4-8"], tmp_path / "out", compiler))
        assert [result.compiled for result in results] == [COMPILED, COMPILED]
    assert [result.program.replicas for result in results] == [8, 4]
    assert (tmp_path / "python.calls").read_text().split() == ["v2:2x2", "v4:2x2x1"]


def test_a_compiler_that_breaks_off_is_a_fault_and_is_asked_again(compiler, tmp_path):
    compiler.write_text("#!/bin/sh\necho no room >&2\nexit 3\n")
    for _ in range(2):
        (result,) = check([{}], ["v3-8"], tmp_path / "out", compiler)
        assert result.faults == ["The compiler failed: exit code 3, no room"]
    assert not list((tmp_path / "out" / "compiled").iterdir())


def test_what_has_a_fault_is_not_compiled(compiler, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_trace", lambda program, out: {"faults": ["a print"]})
    (result,) = check([{}], ["v3-8"], tmp_path / "out", compiler)
    assert result.compiled is None and result.faults == ["a print"]
    assert not (tmp_path / "python.calls").exists()


def test_without_the_environment_one_line_says_how_to_make_it(tmp_path):
    with pytest.raises(InputError, match="`make check-tpu` creates one"):
        compiler_versions(tmp_path / "python")
    with pytest.raises(InputError, match="requirements.txt"):
        compiler_versions(sys.executable)  # has TensorFlow, not libtpu


def test_the_table_tells_what_fits():
    rows = table(
        [
            Checked(Program(), "v3-8", TRACED, COMPILED),
            Checked(Program(batch=128), "v3-8", TRACED, TOO_LARGE),
            Checked(Program(precision="float32", recompute=True), "v2-8", TRACED, None),
        ]
    )
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    assert cells[2] == [
        *("albert-base", "512", "32", "256", "v3-8", "yes", "8.12 of 16", "9.43"),
        *("3 of 48", "303 / 2", "65 s"),
    ]
    assert cells[3][5:7] == ["no", "19.50 of 15.48"]
    assert cells[4][0] == "albert-base, float32, recomputed"
    assert cells[4][5] == "not compiled"
    assert len({len(row) for row in rows}) == 1


def test_a_fault_of_several_programs_is_told_once():
    faulty = Checked(Program(), "v3-8", {"faults": ["a print"]}, None)
    assert list(fault_lines([faulty, faulty])) == ["albert-base, v3-8: a print"]


@pytest.mark.parametrize(
    "compiled, code",
    [(COMPILED, 0), (TOO_LARGE, 0), ({"outcome": "failed", "message": "no lowering"}, 1)],
)
def test_only_what_has_to_be_mended_fails(compiled, code, tmp_path, monkeypatch, capsys):
    checked = [Checked(Program(), "v3-8", TRACED, compiled)]
    monkeypatch.setattr(command, "check", lambda *_: checked)
    monkeypatch.setattr(logging, "basicConfig", lambda **_: None)
    (tmp_path / "out").mkdir()
    assert command.main(["--no-compile", "--out", str(tmp_path / "out")]) == code
    assert "| albert-base |" in capsys.readouterr().out
    assert (tmp_path / "out" / "table.md").exists()


def test_all_kinds_asked_for_are_checked(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(command, "check", lambda programs, *_: asked.extend(programs) or [])
    (tmp_path / "out").mkdir()
    words = ["--kind", "pretraining", "choice", "--batch", "4", "8", "--out", str(tmp_path / "out")]
    assert command.main([*words, "--no-compile"]) == 0
    found = [(fields.get("kind"), fields["batch"]) for fields in asked]
    assert found == [(None, 4), (None, 8), ("choice", 4), ("choice", 8)]


def test_a_value_that_is_not_valid_is_told_before_any_work(tmp_path, capsys):
    assert command.main(["--batch", "0", "--out", str(tmp_path / "out")]) == 2
    assert "`batch`" in capsys.readouterr().err
    assert command.main(["--predict", "--out", str(tmp_path / "out")]) == 2
    assert "`--predict` is for a `--kind` of task" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
