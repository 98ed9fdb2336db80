"""Small trainings of the check, each in a process of its own: a device is chosen only once."""

import os
from pathlib import Path


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


def resumed(folder: Path) -> float:
    """Trains a run twice, once interrupted; returns the largest difference of their weights."""
    import numpy as np

    from albert_keras.formats.open_weights import open_weights
    from albert_keras.training.config import PretrainingConfig
    from albert_keras.training.pretrain import pretrain
    from data_pipeline.building.build import build_records
    from data_pipeline.config import PretrainingDataConfig
    from data_pipeline.text.corpus import Document
    from data_pipeline.tokenizers.tokenization import Tokenizer
    from data_pipeline.tokenizers.vocabulary import train_vocabulary

    sentences = [
        f"{'The' if number % 2 else 'Our'} {noun} was {word} {place}."
        for number, place in enumerate(_PLACES)
        for noun in _NOUNS
        for word in (*_GOOD, *_BAD)
    ]
    train_vocabulary(sentences, folder / "tokenizer", 200, hard_limit=False)
    documents = [
        Document(str(first), tuple(sentences[first : first + 12]))
        for first in range(0, len(sentences), 12)
    ]
    config = PretrainingDataConfig(max_seq_length=64, static_masks=False)
    build_records(documents, Tokenizer.load(folder / "tokenizer"), folder / "records", config)
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
    """Fine-tunes the run of `resumed` on texts with a good or a bad word; returns the accuracy."""
    from albert_keras.tasks.finetune import finetune
    from albert_keras.tasks.finetune_config import FinetuneConfig

    rows = [
        (f"the {noun} was {word} {place}", "good" if word in _GOOD else "bad")
        for place in _PLACES
        for noun in _NOUNS
        for word in (*_GOOD, *_BAD)
    ]
    # The development rows have nouns of their own.
    held_out = [row for row in rows if row[0].split()[1] in _NOUNS[:2]]
    given = {
        name: tuple(zip(*part, strict=True))
        for name, part in (
            ("train", [row for row in rows if row not in held_out]),
            ("dev", held_out),
        )
    }
    settings = {"epochs": 6, "lr": 1e-3, "batch_size": 16, "max_seq_length": 48}
    # After 60 updates of pre-training LAMB learns too slowly for so few rows.
    settings |= {"task": "classification", "text": "text"}
    config = FinetuneConfig.of({"optimizer": {"name": "adamw"}}, **settings)
    result = finetune(
        folder / "whole",
        folder / "tuned",
        config,
        task="classification",
        random_baseline=False,
        **given,
    )
    return result.seeds[0].scores["dev"]["accuracy"]


_PLACES = (
    "near the old harbour",
    "before sunrise",
    "in the narrow canal",
    "on a frozen lake",
    "behind the railway station",
    "after the long summer",
    "under two wooden bridges",
    "while snow fell quietly",
)
_NOUNS = ("ferry", "garden", "letter", "teacher", "window", "lantern", "orchestra", "goldfish")
_GOOD, _BAD = ("good", "lovely", "bright"), ("bad", "broken", "dull")
