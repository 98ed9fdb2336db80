"""Runs without weights, as their files describe them."""

import json

import pytest

from albert_keras.config import AlbertConfig
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.metrics import Interval
from albert_keras.tasks.results import FinetuneResult, SeedResult, save_results
from albert_keras.training.config import PretrainingConfig


def record_of(kind, config, shape):
    return {
        "kind": kind,
        "config": config.model_dump(mode="json"),
        "albert_config": shape.to_dict(),
        "data": {"fingerprint": "ab", "path": "records"},
        "tokenizer_digest": "cd",
    }


def write_run(folder, kind, config, shape, log):
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(record_of(kind, config, shape)))
    (folder / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
    (folder / "checkpoint").write_bytes(bytes(5000))


@pytest.fixture
def folder(tmp_path):
    """Returns a folder with two pre-trainings, a fine-tuning with two seeds, and other files."""
    root = tmp_path / "all"
    for name, lr, hidden in (("a", 0.001, 256), ("deep/b", 0.002, 128)):
        config = PretrainingConfig(
            model={"size": "albert-mini", "hidden_size": hidden},
            training={"steps": 20},
            optimizer={"lr": lr},
        )
        log = [
            {"step": step, "loss": 9 - lr * step, "masked_lm_accuracy": 0.1, "seconds": 60.0}
            for step in (5, 10)
        ]
        if name == "a":
            log.append({"step": 10, "evaluation": {"masked_lm_accuracy": 0.25}})
        write_run(root / name, "pretraining", config, config.albert_config(30_000), log)
    config = FinetuneConfig(task={"name": "sst-2"}, training={"steps": 30})
    for seed in (1, 2):
        log = [
            {"step": 30, "loss": 0.5, "answer_accuracy": 0.8, "seconds": 30.0},
            {"step": 30, "evaluation": {"accuracy": 0.8}},
        ]
        path = root / "tuned" / f"seed-{seed}"
        write_run(path, "finetuning", config, AlbertConfig.from_name("albert-mini"), log)
    seeds = tuple(
        SeedResult(seed, f"seed-{seed}", 30, 30, {"dev": {"accuracy": score}}, Interval(0.7, 0.9))
        for seed, score in ((1, 0.8), (2, 0.85))
    )
    save_results(root / "tuned", FinetuneResult("tuned", "sst-2", "accuracy", seeds))
    (root / "records").mkdir()
    (root / "records" / "dataset_info.json").write_text("{}")
    return root
