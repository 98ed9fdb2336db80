"""Each of the most common mistakes has a number, a row in the documentation, and a test."""

import re
from pathlib import Path

from albert_keras.cli.output import report_error
from albert_keras.training.errors import TrainingDiverged
from data_pipeline.errors import DOCUMENT, InputError, Mistake
from data_pipeline.settings import Problem, SettingsError
from tests.repository import ROOT, needs_repository

_COMMANDS = Path(__file__).with_name("wrong_commands.txt")
#: Tested here, or with a full disk in test_commands.py.
_OTHERS = {"AK108", "AK308", "AK309"}


@needs_repository
def test_each_mistake_has_a_row_that_says_where_it_comes_from():
    text = (ROOT / DOCUMENT).read_text(encoding="utf-8")
    rows = re.findall(r"^- \*\*(AK\d+)\*\* \S.+: \S.+\.$", text, flags=re.M)
    assert rows == [one.value for one in Mistake]


def test_each_mistake_is_tested_with_a_wrong_command():
    lines = _COMMANDS.read_text(encoding="utf-8").splitlines()
    tested = {line.split(" => ")[2] for line in lines[1:] if line.count(" => ") == 2}
    assert tested | _OTHERS == {one.value for one in Mistake}


def test_the_number_is_in_the_last_line(capsys):
    unknown = Problem(("a",), "is not a known key.")
    error = SettingsError("X", [unknown, Problem(("b",), "must be 1."), unknown])
    assert report_error(error, debug=False) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "AK201, AK202: see docs/errors.md"
    assert report_error(InputError("Other."), debug=False) == 2
    assert capsys.readouterr().err == "error: Other.\n"


def test_a_run_that_diverged_has_a_number(capsys):
    assert report_error(TrainingDiverged(Path("run"), 5, 100), debug=False) == 3
    assert capsys.readouterr().err.endswith("AK309: see docs/errors.md\n")
