"""How many replicas and parts share a batch changes neither its records nor its result."""

import json
import subprocess
import sys

import numpy as np
import pytest

from albert_keras.runs.log_file import read_log
from tests.albert_keras.checkpoint_tensors import tensors_of

#: Devices can only be set up before TensorFlow starts.
TWO_DEVICES = """
import json, sys
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
"""
TWO_REPLICAS = f"""{TWO_DEVICES}
from albert_keras.training import pretrain as module
from albert_keras.training.config import PretrainingConfig
config = PretrainingConfig.model_validate_json(sys.argv[3])
for max_steps in json.loads(sys.argv[4]):
    module.pretrain(*sys.argv[1:3], config, max_steps=max_steps)
"""
#: Prints what `evaluate` and `fit` report with two replicas and with one.
SCORES = f"""{TWO_DEVICES}
import keras
from tests.albert_keras.models.test_objective_model import batch, build
for strategy in (tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]), tf.distribute.get_strategy()):
    with strategy.scope():
        model = build(optimizer=keras.optimizers.SGD(0.0), steps_per_execution=2)
    data = tf.data.Dataset.from_tensor_slices(batch()).batch(4).repeat(2)
    fitted = model.fit(data, validation_data=data, verbose=0).history
    print(json.dumps([*model.evaluate(data, verbose=0), *fitted["loss"], *fitted["val_loss"]]))
"""


@pytest.mark.slow
def test_scores_do_not_depend_on_the_number_of_replicas():
    found = subprocess.run([sys.executable, "-c", SCORES], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-3000:]
    two, one = map(json.loads, found.stdout.splitlines())
    assert two == pytest.approx(one) and len(one) > 4


@pytest.mark.slow
@pytest.mark.parametrize("max_steps", [[None], [5, None]], ids=["straight", "resumed"])
def test_two_replicas_compute_what_one_does_in_two_parts(
    max_steps, tiny_records, hard_training, straight_run, tmp_path
):
    config = hard_training.with_flags(strategy="mirrored", accumulation_steps=1)
    command = [sys.executable, "-c", TWO_REPLICAS, tiny_records, tmp_path / "run"]
    command += [config.model_dump_json(exclude_unset=True), json.dumps(max_steps)]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr[-3000:]
    one, two = (tensors_of(run, 14) for run in (straight_run, tmp_path / "run"))
    for name in one.keys() - {"global_step"}:
        if "adam_" not in name:
            np.testing.assert_allclose(one[name], two[name], atol=2e-4, err_msg=name)
    for before, after in zip(read_log(straight_run), read_log(tmp_path / "run"), strict=True):
        assert after["tokens_per_second"] > 0
        for name in ("loss", "gradient_norm"):
            assert after[name] == pytest.approx(before[name], rel=1e-3)
