"""Mistakes that need no TensorFlow are reported before it is imported, which takes seconds."""

import json
import subprocess
import sys

import pytest

_MISTAKES = [
    ("finetune --from nowhere --task sst-2 --out new", "or a `.keras` file; or `random` for"),
    ("finetune --from random --task nonsense --out new", "`task.name` is unknown"),
    ("finetune --from random --task sst-2 --data-dir nowhere --out new", "`nowhere` does not"),
    (
        "finetune --from random --task classification --train no.csv --text a --label b --out new",
        "`no.csv` cannot be read",
    ),
    ("pretrain --data nowhere --out new", "`nowhere` does not exist or is not a folder of records"),
    ("pretrain --data empty --out new", "`empty` has no dataset_info.json"),
    ("pretrain --data {records} --eval-data nowhere --out new", "`nowhere` does not exist"),
    ("pretrain --data {records} --init-from nowhere --out new", "checkpoint, or a `.keras` file."),
    ("pretrain --data {records} --init-from random --out new", "`--init-from` must be a path"),
    ("distill --teacher random --data {records} --out new", "this name means random weights"),
    (
        'pretrain --data {records} --out new --set stages=[{{"share":1,"data":"nowhere"}}]',
        "`nowhere` does not exist or is not a folder of records",
    ),
    (
        'pretrain --data {records} --out new --set stages=[{{"share":1,"num_hidden_layers":9}}]',
        "`stages.0.num_hidden_layers` must not exceed the depth of the model",
    ),
    ("evaluate --run nowhere --data empty", "`nowhere` is not the folder of a run"),
    ("evaluate --run empty --data {records}", "`empty` is not the folder of a run"),
    ("evaluate --run {run} --data nowhere", "`nowhere` does not exist or is not a folder of"),
    ("evaluate --run {run}", "requires one `--run` and `--data`"),
    ("evaluate --run nowhere --minimal-pairs pairs.jsonl", "No weights were found at `nowhere`"),
    ("evaluate --run {run} --minimal-pairs nowhere", "`nowhere` cannot be read"),
    ("evaluate --run {run} --minimal-pairs empty", "contains no files that end in .jsonl"),
    ("predict nowhere --score text", "No weights were found at `nowhere`"),
    ("export --run nowhere --out new", "`nowhere` is not the folder of a run"),
    ("export --run empty --out new", "`empty` is not the folder of a run"),
    ("export --run {run} --out New.Model", "The name of a model must have"),
    ("predict nowhere text", "The folder `nowhere` does not exist"),
    ("convert nowhere new", "The model `nowhere` does not exist"),
    ("convert empty new", "SOURCE must be a model. Received: an empty folder"),
    ("server-kit nowhere --out new", "nowhere` contains no exported model"),
    ("server-kit empty --out new", "empty` contains no exported model"),
    ("predict empty text", "`empty` contains no exported model"),
]

_PROGRAM = """
import contextlib, io, json, sys
from albert_keras.cli import main

results = []
for command in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as errors:
        code = main(command)
    results.append((code, errors.getvalue(), "tensorflow" in sys.modules))
print(json.dumps(results))
"""


@pytest.fixture(scope="module")
def results(tiny_records, tiny_run, tmp_path_factory):
    """Returns exit code, error message and whether TensorFlow was imported, by command."""
    folder = tmp_path_factory.mktemp("mistakes")
    (folder / "empty").mkdir()
    names = {"records": tiny_records, "run": tiny_run}
    commands = [[part.format(**names) for part in text.split()] for text, _ in _MISTAKES]
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps(commands)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert [path.name for path in folder.iterdir()] == ["empty"], "something was written"
    return dict(zip((text for text, _ in _MISTAKES), json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("command, message", _MISTAKES)
def test_a_wrong_path_is_reported_without_tensorflow(results, command, message):
    code, errors, has_tensorflow = results[command]
    assert code == 2 and message in errors and "Traceback" not in errors
    assert not has_tensorflow
