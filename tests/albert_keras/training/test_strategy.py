"""Where training runs, and in which precision."""

import logging
import os

import pytest
import tensorflow as tf

from albert_keras.training import strategy as strategies
from albert_keras.training.strategy import (
    build_strategy,
    choose_precision,
    describe_devices,
    has_tpu,
)
from data_pipeline.errors import InputError


@pytest.fixture(autouse=True)
def no_tpu_no_cluster(monkeypatch):
    for name in ("TPU_LIBRARY_PATH", "TF_CONFIG"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "file, is_tpu",
    [("null", False), ("accel0", True), ("vfio/0", True), ("accel/accel0", False)],
)
def test_a_tpu_is_known_by_its_device_files(file, is_tpu, tmp_path):
    for path in (tmp_path / file, tmp_path / "libtpu.so"):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    assert has_tpu(tmp_path, [tmp_path / "libtpu.so"]) is is_tpu


WORKERS = '{"cluster": {"worker": ["a:1", "b:1"]}, "task": {"type": "worker", "index": 0}}'


@pytest.mark.parametrize(
    "has_tpu, gpus, tf_config, is_training, chosen",
    [
        (True, 2, "", True, "_tpu_strategy"),
        (False, 2, "", True, "_mirrored_strategy"),
        (False, 2, WORKERS, False, "_mirrored_strategy"),
        (True, 2, WORKERS, True, "_multiworker_strategy"),
        (False, 0, WORKERS, True, "_multiworker_strategy"),
        (False, 2, WORKERS.replace(', "b:1"', ""), True, "_mirrored_strategy"),
    ],
)
def test_auto_takes_what_there_is(has_tpu, gpus, tf_config, is_training, chosen, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", tf_config)
    monkeypatch.setattr(strategies, "has_tpu", lambda: has_tpu)
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["GPU"] * gpus)
    for name in ("_tpu_strategy", "_mirrored_strategy", "_multiworker_strategy"):
        monkeypatch.setattr(strategies, name, lambda name=name: name)
    assert build_strategy("auto", is_training) == chosen


@pytest.mark.parametrize(
    "tf_config",
    [
        "",
        "no json",
        '{"cluster": {"worker": ["a:1"]}}',
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}',
    ],
)
def test_multiworker_without_a_usable_tf_config_is_refused(tf_config, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", tf_config)
    with pytest.raises(InputError, match="`TF_CONFIG` (must be|is not set)"):
        build_strategy("multiworker")
    if tf_config:
        with pytest.raises(InputError, match="`TF_CONFIG` must be"):
            build_strategy("auto", is_training=True)


def test_a_tpu_that_is_not_there_or_does_not_start_is_an_error_and_not_a_run_on_the_cpu(
    monkeypatch,
):
    if tf.config.list_physical_devices("TPU"):
        pytest.skip("this machine has a TPU")
    monkeypatch.setattr(strategies, "has_tpu", lambda: False)
    with pytest.raises(InputError, match="needs a TPU"):
        build_strategy("tpu")
    monkeypatch.setattr(strategies, "has_tpu", lambda: True)
    with pytest.raises(InputError, match="The TPU could not be started"):
        build_strategy("auto")


@pytest.mark.parametrize(
    "flags, precision",
    [("amx_bf16", "mixed_bfloat16"), ("avx512_bf16", "mixed_bfloat16"), ("avx512f", "float32")],
)
def test_precision_follows_the_processor(tmp_path, flags, precision):
    (tmp_path / "cpuinfo").write_text(f"flags : fpu {flags} avx")
    strategy = build_strategy("single")
    assert choose_precision(strategy, tmp_path / "cpuinfo") == precision
    assert choose_precision(strategy, tmp_path / "nowhere") == "float32"


@pytest.mark.parametrize(
    "capabilities, precision",
    [([(9, 0)], "mixed_bfloat16"), ([(8, 0), (7, 5)], "float32"), ([None], "float32")],
)
def test_precision_follows_the_oldest_gpu(monkeypatch, capabilities, precision):
    details = {gpu: {"compute_capability": gpu} if gpu else {} for gpu in capabilities}
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: capabilities)
    monkeypatch.setattr(tf.config.experimental, "get_device_details", details.get)
    assert choose_precision(None) == precision


def test_the_device_is_named(monkeypatch, tmp_path, caplog):
    monkeypatch.setattr(strategies, "NVIDIA_DEVICES", tmp_path)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 5}, raising=False)
    assert describe_devices() == describe_devices(build_strategy("single")) == "CPU with 3 cores"
    assert not caplog.messages
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {7}, raising=False)
    (tmp_path / "nvidia0").touch()
    with caplog.at_level(logging.WARNING):
        assert describe_devices() == "CPU with 1 core"
    assert "`albert-keras doctor` says what to install" in caplog.text
