"""What is made with one supported TensorFlow is used with the other: runs, exports and records.

`ALBERT_KERAS_OTHER_PYTHON` names the Python of an environment with the other TensorFlow, in which
the requirements of this project are installed.
"""

import itertools
import json
import os
import subprocess
import sys

import pytest

from tests.differences import differences
from tests.old_artifacts import unpack
from tests.old_artifacts.measures import PRETRAINING
from tests.repository import PACKAGES

OTHER = os.environ.get("ALBERT_KERAS_OTHER_PYTHON")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(OTHER is None, reason="ALBERT_KERAS_OTHER_PYTHON is not set"),
]
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


#: Makes an export and records below a folder, and measures exports and records below all folders.
MAKE = """
import json, sys
from pathlib import Path
from albert_keras import export
from albert_keras.cli import main
from albert_keras.serving.saved_model.server_ops import check_ops
from tests.old_artifacts import measures
made, *measured = map(Path, sys.argv[1:])
export("run", made / "export")
files = ["--corpus", "corpus.txt", "--tokenizer", "tokenizer", "--out", f"{made}/records"]
assert main(["data", "build", *files, "--max-seq-length", "32"]) == 0
for place in (made, *measured):
    check_ops(place / "export" / "1")
found = {
    place.name: {
        "saved model": measures.of_pretrained_export(place / "export"),
        "keras file": measures.of_keras_model(place / "export" / "model-1.keras"),
        "records": measures.of_records(place / "records"),
    }
    for place in (made, *measured)
}
print(json.dumps(found))
"""


#: Prints the running loss of each of at least fifty updates of the pre-training model and of every
#: text model, by its name.
FIFTY = """
import json, sys
import keras
import tensorflow as tf
from albert_keras import load_tokenizer
from tests.albert_keras.models.test_objective_model import batch, build
from tests.albert_keras.tasks.test_text_model import KINDS, LABELS, TEXTS, preset
sorter = {"AlbertForClassification": ({"labels": ["no", "yes"]}, TEXTS, LABELS)}
tokenizer, losses = load_tokenizer(sys.argv[1]), {}
def trained(model, *given, **settings):
    found = []
    show = keras.callbacks.LambdaCallback()
    show.on_train_batch_end = lambda batch, logs: found.append(float(logs["loss"]))
    while len(found) < 50:
        model.fit(*given, **settings, shuffle=False, verbose=0, callbacks=[show])
    return found
batches = iter(map(batch, range(50)))
data = tf.data.Dataset.from_generator(lambda: batches, output_signature=tf.nest.map_structure(
    lambda one: tf.TensorSpec(one.shape, one.dtype), batch()))
losses["AlbertForPretraining"] = trained(build(dropout=0.1), data)
for name, (arguments, x, y) in (sorter | KINDS).items():
    model = preset(tokenizer, name, seed=1, **arguments)
    losses[name] = trained(model, x, y, batch_size=4, epochs=10)
print(json.dumps(losses))
"""


def run(python, folder, *words):
    """Runs a program in a folder with this project, and returns the last line that it prints."""
    done = subprocess.run(
        [python, "-c", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(PACKAGES)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


def train(python, folder, out, max_steps=0):
    """Trains a run, or resumes it, and returns the version of TensorFlow."""
    return run(python, folder, TRAIN, out, "pretraining.json", str(max_steps))


@pytest.fixture
def old(tmp_path):
    """Returns a folder with a tokenizer, records and a run."""
    return unpack(tmp_path)


def losses(run):
    """Returns the losses of all steps: list of lists, [steps, len(LOSSES)]."""
    lines = map(json.loads, (run / "log.jsonl").read_text(encoding="utf-8").splitlines())
    return [[line[name] for name in LOSSES] for line in lines]


@pytest.mark.parametrize("optimizer", ["lamb", "adamw"])
def test_a_run_is_resumed_with_the_other_tensorflow(old, optimizer):
    settings = PRETRAINING | {"optimizer": PRETRAINING["optimizer"] | {"name": optimizer}}
    (old / "pretraining.json").write_text(json.dumps(settings), encoding="utf-8")
    pythons = {"this": sys.executable, "other": OTHER}
    versions = {name: train(pythons[name], old, f"only-{name}") for name in pythons}
    assert versions["this"] != versions["other"]
    for first, second in itertools.permutations(pythons):
        out = f"{first}-first"
        train(pythons[first], old, out, max_steps=4)
        assert len(losses(old / out)) == 4
        train(pythons[second], old, out)
        received = losses(old / out)
        assert len(received) == 8
        for uninterrupted in ("only-this", "only-other"):
            for row, expected in zip(received, losses(old / uninterrupted), strict=True):
                assert row == pytest.approx(expected, rel=0, abs=1e-5)


def test_fifty_updates_have_the_same_losses(tmp_path, tiny_vocabulary):
    words = FIFTY, str(tiny_vocabulary.path)
    ours, theirs = (json.loads(run(each, tmp_path, *words)) for each in (sys.executable, OTHER))
    assert ours.keys() == theirs.keys() and len(ours) == 8
    for name, found in ours.items():
        assert len(found) >= 50 and len(set(found)) > 10
        assert found == pytest.approx(theirs[name], rel=0, abs=1e-5), name


def test_exports_and_records_are_used_with_the_other_tensorflow(old, tiny_corpus):
    text = "\n\n".join("\n".join(tiny_corpus[start : start + 6]) for start in range(0, 120, 6))
    (old / "corpus.txt").write_text(text, encoding="utf-8")
    run(sys.executable, old, MAKE, "this")
    with_other = json.loads(run(OTHER, old, MAKE, "other", "this"))
    with_this = json.loads(run(sys.executable, old, MAKE, "again", "other", "this"))
    expected = with_this.pop("again")
    assert expected["saved model"]["fill_mask"] and expected["records"]["num_records"] > 10
    for measured in (with_other, with_this):
        assert measured.keys() == {"other", "this"}
        for found in measured.values():
            assert differences(found, expected) == []
