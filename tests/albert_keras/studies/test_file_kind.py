"""`config check` knows the files of studies."""

import json

import pytest

from albert_keras.cli import main
from albert_keras.studies.catalogue import find_study

WRONG = """\
title: Two heads or three?
base:
  vocabulary: {sise: 300}
evaluate:
  sop: {title: SOP, score: sentences}
runs:
  - name: two
    scales: {tny: {corpus_share: 0.5}}
  - name: three
    model: {num_atention_heads: 3}
refrence: two
"""
#: At scale paper the hidden size is a multiple of 3.
CONTRADICTORY = """\
title: Two heads or three?
runs:
  - name: two
    training: {accumulation_steps: 0.5}
  - name: three
    model: {num_attention_heads: 3}
"""


UNKNOWN_RUNS = """\
title: Two heads or three?
reference: tow
runs:
  - name: two
  - name: three
    teacher: to
"""


@pytest.fixture
def check(tmp_path, capsys):
    """Returns a function that checks a file: (exit code, (line, key) of the problems, messages)."""

    def run(text, *words):
        path = tmp_path / "mine.yaml"
        path.write_text(text)
        code = main(["config", "check", str(path), "--json", *words])
        printed = json.loads(capsys.readouterr().out)
        problems = printed["problems"]
        found = [(problem["line"], problem["key"]) for problem in problems]
        return code, found, " ".join(problem["message"] for problem in problems)

    return run


def test_all_problems_of_a_study_are_found_with_their_lines(check):
    code, problems, messages = check(WRONG)
    assert code == 2
    assert problems == [
        (3, "base.vocabulary.sise"),
        (5, "evaluate.sop.score"),
        (8, "runs.0.scales.tny"),
        (10, "runs.1.model.num_atention_heads"),
        (11, "refrence"),
    ]
    for name in ("size", "tiny", "num_attention_heads", "reference"):
        assert f"Did you mean `{name}`?" in messages


def test_names_of_runs_are_suggested(check):
    code, problems, messages = check(UNKNOWN_RUNS)
    assert code == 2 and problems == [(3, "runs"), (6, "runs.1.teacher")]
    assert messages.count("Did you mean `two`?") == 2


def test_settings_that_do_not_fit_together_are_found_at_every_scale(check):
    code, problems, messages = check(CONTRADICTORY)
    assert code == 2 and problems == [(4, "runs.0.training.accumulation_steps")]
    valid = CONTRADICTORY.replace("    training: {accumulation_steps: 0.5}\n", "")
    code, problems, messages = check(valid)
    assert code == 2 and {line for line, _ in problems} == {5}
    assert "hidden_size=128, num_attention_heads=3. (at scale tiny)" in messages
    assert "(at scale mini)" in messages and "(at scale paper)" not in messages


def test_a_valid_study_names_its_command(tmp_path, capsys):
    path = find_study("sharing")
    assert main(["config", "check", str(path)]) == 0
    assert f"next: albert-keras study {path} ..." in capsys.readouterr().out


def test_kinds_are_suggested(tmp_path, capsys):
    assert main(["config", "check", str(tmp_path / "x.yaml"), "--kind", "studdy"]) == 2
    assert "Did you mean `study`?" in capsys.readouterr().err
