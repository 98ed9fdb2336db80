"""`data verify` and `data inspect` as a user gives them."""

import json
import shutil

from albert_keras.cli import main


def test_damaged_records_get_one_error_with_every_problem(tiny_records, tmp_path, capsys):
    assert main(["data", "verify", str(tiny_records), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["problems"] == []
    damaged = shutil.copytree(tiny_records, tmp_path / "damaged")
    path, other = sorted(damaged.glob("*.tfrecord"))
    path.unlink()
    other.write_bytes(other.read_bytes()[:-1])
    assert main(["data", "verify", str(damaged)]) == 2
    shown = capsys.readouterr()
    assert not shown.out
    title, first, second = shown.err.splitlines()
    assert title == f"error: 2 problems in `{damaged}`:"
    assert "`pretraining-00000-of-00002.tfrecord` cannot be read: No such file" in first
    assert "`pretraining-00001-of-00002.tfrecord` is damaged or another one" in second
    assert main(["data", "verify", str(damaged), "--json"]) == 2
    problems = json.loads(capsys.readouterr().out)["problems"]
    assert [one[:18] for one in problems] == ["`pretraining-00000", "`pretraining-00001"]


def test_records_are_shown(tiny_records, capsys):
    command = ["data", "inspect", str(tiny_records), "--examples", "2"]
    assert main(command) == 0
    shown = capsys.readouterr()
    assert not shown.err
    assert shown.out.count("order: ") == 2 and shown.out.count("  [CLS]") == 2
    assert "[MASK]→" in shown.out
    assert main([*command, "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)["examples"]
    assert first["segments"][0].startswith("[CLS]") and first["segments"] != second["segments"]
