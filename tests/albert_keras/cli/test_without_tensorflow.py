"""Commands that compute nothing with a model do not import TensorFlow, which takes seconds."""

import json
import subprocess
import sys

from tests.old_artifacts import unpack

#: Each with its exit code. Wrong paths are in `wrong_commands.txt`.
_COMMANDS = (
    ("data build --corpus train.csv --tokenizer finetuned --out new --max-seq-length 32", 0),
    ("data check train.csv --tokenizer saved_models/old", 0),
    (
        "data check --task classification --train train.csv --text text --label topic "
        "--tokenizer saved_models/old/model-1.keras",
        0,
    ),
    ("data verify records", 0),
    ("init pretrain --out pretrain.yaml", 0),
    ("runs list .", 0),
    ("runs report finetuned", 0),
)

_PROGRAM = """
import json, sys
from albert_keras.cli import main

seen = []
for line in json.loads(sys.argv[1]):
    seen.append((line, main(line.split()), "tensorflow" in sys.modules))
json.dump(seen, open("seen.json", "w"))
"""


def test_no_tensorflow_is_imported_without_need(tmp_path):
    unpack(tmp_path)
    lines = json.dumps([line for line, _ in _COMMANDS])
    command = [sys.executable, "-c", _PROGRAM, lines]
    subprocess.run(command, cwd=tmp_path, check=True)
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert seen == [[line, code, False] for line, code in _COMMANDS]
