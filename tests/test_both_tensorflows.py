"""A run that is begun with one supported TensorFlow is resumed with the other.

`ALBERT_KERAS_OTHER_PYTHON` names the Python of an environment with the other TensorFlow, in which
the requirements of this project are installed.
"""

import itertools
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.old_artifacts.measures import PRETRAINING

ROOT = Path(__file__).parents[1]
OTHER = os.environ.get("ALBERT_KERAS_OTHER_PYTHON")
LOSSES = ("loss", "masked_lm_loss", "sentence_order_loss")
TRAIN = """
import sys
from importlib import metadata
from albert_keras import pretrain
from albert_keras.training.config import PretrainingConfig
out, file, max_steps = sys.argv[1:]
config = PretrainingConfig.model_validate_json(open(file, encoding="utf-8").read())
pretrain("records", out, config, max_steps=int(max_steps) or None)
print(metadata.version("tensorflow"))
"""


def train(python, folder, out, max_steps=0):
    """Trains a run, or resumes it, and returns the version of TensorFlow."""
    words = [python, "-c", TRAIN, out, "pretraining.json", str(max_steps)]
    done = subprocess.run(
        words,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()[-1]


def losses(run):
    """Returns the losses of all steps: list of lists, [steps, len(LOSSES)]."""
    lines = map(json.loads, (run / "log.jsonl").read_text(encoding="utf-8").splitlines())
    return [[line[name] for name in LOSSES] for line in lines]


@pytest.mark.slow
@pytest.mark.skipif(OTHER is None, reason="ALBERT_KERAS_OTHER_PYTHON is not set")
@pytest.mark.parametrize("optimizer", ["lamb", "adamw"])
def test_a_run_is_resumed_with_the_other_tensorflow(tmp_path, optimizer):
    with tarfile.open(ROOT / "tests/old_artifacts/old_artifacts.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    settings = PRETRAINING | {"optimizer": PRETRAINING["optimizer"] | {"name": optimizer}}
    (tmp_path / "pretraining.json").write_text(json.dumps(settings), encoding="utf-8")
    pythons = {"this": sys.executable, "other": OTHER}
    versions = {name: train(pythons[name], tmp_path, f"only-{name}") for name in pythons}
    assert versions["this"] != versions["other"]
    for first, second in itertools.permutations(pythons):
        out = f"{first}-first"
        train(pythons[first], tmp_path, out, max_steps=4)
        assert len(losses(tmp_path / out)) == 4
        train(pythons[second], tmp_path, out)
        received = losses(tmp_path / out)
        assert len(received) == 8
        for uninterrupted in ("only-this", "only-other"):
            for row, expected in zip(received, losses(tmp_path / uninterrupted), strict=True):
                assert row == pytest.approx(expected, rel=0, abs=1e-5)
