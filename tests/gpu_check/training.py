"""Small trainings of the check, each in a process of its own: a device is chosen only once."""

import itertools
import os
import statistics
import time
from pathlib import Path

_STEPS = 10
_NOUNS = ("ferry", "garden", "letter", "teacher", "window", "lantern", "orchestra", "goldfish")
_PLACES = ("near the old harbour", "before sunrise", "on a frozen lake", "after the long summer")
_LABELS = dict.fromkeys(("good", "lovely", "bright"), "good")
_LABELS |= dict.fromkeys(("bad", "broken", "dull"), "bad")


def losses(
    shape: tuple[str, int, int], runs: list[tuple[str, str, int]], on_cpu: bool
) -> list[list[float]]:
    """Returns the losses of updates on one batch, with dropout, for each of several trainings.

    Args:
        shape: Arguments of `make_shape`.
        runs: What is compiled, as `training.compile`; the precision; and the number of updates.
        on_cpu: Whether the GPU is hidden.
    """
    if on_cpu:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    import tensorflow as tf

    from tests.benchmarks.shapes import make_shape
    from tests.benchmarks.trainers import prepare_ours

    tf.config.experimental.enable_tensor_float_32_execution(False)
    given = make_shape(*shape)
    config = given.config.replace(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1)
    found = []
    for part, precision, updates in runs:
        prepared = prepare_ours(given._replace(config=config), precision, {"compile": part})
        found.append([])
        for _ in range(updates):
            prepared.run()
            found[-1].append(prepared.facts["last_loss"])
    return found


def step_seconds(shape: tuple[str, int, int], optimizer: str) -> float:
    """Returns the seconds of an update: the median of ten, after the graph is built.

    Args:
        shape: Arguments of `make_shape`.
        optimizer: Its name.
    """
    from tests.benchmarks.shapes import make_shape
    from tests.benchmarks.trainers import prepare_ours

    prepared = prepare_ours(make_shape(*shape), "mixed_bfloat16", optimizer=optimizer)
    prepared.run()
    seconds = []
    for _ in range(_STEPS):
        started = time.perf_counter()
        prepared.run()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds)


def resumed(folder: Path) -> float:
    """Trains a run twice, once interrupted; returns the largest difference of their weights."""
    import numpy as np

    from albert_keras import load_tokenizer
    from albert_keras.demo_corpus import demo_documents
    from albert_keras.formats.open_weights import open_weights
    from albert_keras.training.config import PretrainingConfig
    from albert_keras.training.pretrain import pretrain
    from data_pipeline.building.build import build_records
    from data_pipeline.config import PretrainingDataConfig

    documents = list(itertools.islice(demo_documents(), 100))
    config = PretrainingDataConfig(max_seq_length=64, static_masks=False)
    build_records(documents, load_tokenizer("albert-mini-en"), folder / "records", config)
    shape = {"size": "albert-tiny", "hidden_size": 64, "intermediate_size": 256}
    shape |= {"num_attention_heads": 2}
    settings = PretrainingConfig(model=shape, training={"steps": 60, "batch_size": 16})
    weights = []
    for name, parts in (("whole", [60]), ("resumed", [25, 35])):
        for steps in parts:
            pretrain(folder / "records", folder / name, settings, max_steps=steps)
        weights.append(open_weights(folder / name).build().get_weights())
    return max(float(np.abs(a - b).max()) for a, b in zip(*weights, strict=True))


def fine_tuned(folder: Path) -> float:
    """Fine-tunes the shipped model on texts with a good or a bad word; returns the accuracy."""
    from albert_keras.tasks.finetune import finetune

    def written(name, nouns):
        words = itertools.product(nouns, _LABELS, _PLACES)
        rows = [f"the {noun} was {word} {place}\t{_LABELS[word]}" for noun, word, place in words]
        path = folder / f"{name}.tsv"
        path.write_text("\n".join(["text\tlabel", *rows]) + "\n")
        return str(path)

    result = finetune(
        "albert-mini-en",
        folder / "tuned",
        task="classification",
        text="text",
        label="label",
        train=written("train", _NOUNS[2:]),
        dev=written("dev", _NOUNS[:2]),
        **{"epochs": 3, "batch_size": 16, "max_seq_length": 16},
    )
    return result.seeds[0].scores["dev"]["accuracy"]
