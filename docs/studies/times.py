"""Times the runs of a study in turn: an update of a training, and an answer of the encoder.

    python docs/studies/times.py docs/studies/equal-time.yaml --scale tiny

The runs take turns, so that a machine that is slow for a while is slow for all of them. The table
has medians, and the updates that each run can make in the time of the first one.
"""

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
import study as studies
import tensorflow as tf
import yaml

from albert_keras.cli.arguments import read_values
from albert_keras.report import markdown_table
from albert_keras.training.build import build_pretraining
from albert_keras.training.strategy import build_strategy, choose_precision

WARM_UP = 3  # uncounted calls of each function, the one that traces it included


def random_batch(vocabulary_size: int, data, batch_size: int) -> dict:
    """Returns the features of a batch of random tokens without padding."""
    length, rng = data.max_seq_length, np.random.default_rng(0)
    predictions = data.max_predictions_per_seq or int(data.masking.masked_lm_prob * length)
    values = {
        "input_ids": rng.integers(5, vocabulary_size, (batch_size, length)),
        "segment_ids": np.zeros((batch_size, length)),
        "input_mask": np.ones((batch_size, length)),
        "masked_lm_positions": np.tile(np.arange(predictions), (batch_size, 1)),
        "masked_lm_ids": rng.integers(5, vocabulary_size, (batch_size, predictions)),
        "sentence_order_labels": np.zeros(batch_size),
    }
    features = {name: tf.constant(value.astype(np.int32)) for name, value in values.items()}
    weights = {
        "masked_lm_weights": tf.ones([batch_size, predictions]),
        "example_weights": tf.ones([batch_size]),
    }
    return features | weights


def prepare(vocabulary_size: int, data, config) -> tuple:
    """Returns the number of weights, and functions that update and that answer once."""
    config = config.resolved(choose_precision(build_strategy(config.training.strategy)))
    model = build_pretraining(config, config.albert_config(vocabulary_size))
    features = random_batch(vocabulary_size, data, config.training.batch_size)
    train, names = model.make_train_function(), ("input_ids", "segment_ids", "input_mask")
    inputs = {name: features[name] for name in names}
    encode = tf.function(lambda: model.encoder(inputs)["sequence_output"])
    weights = sum(int(tf.size(weight)) for weight in model.trainable_variables)

    def update():
        train(iter([features]))
        return model.trainable_variables[0].numpy()

    return weights, update, lambda: encode().numpy()


def measure(functions: list, rounds: int) -> list[float]:
    """Returns the median seconds of each function, which take turns."""
    taken: list[list[float]] = [[] for _ in functions]
    for turn in range(WARM_UP + rounds):
        for function, seconds in zip(functions, taken, strict=True):
            began = time.perf_counter()
            function()
            if turn >= WARM_UP:
                seconds.append(time.perf_counter() - began)
    return [statistics.median(seconds) for seconds in taken]


def main(words: list[str] | None = None) -> None:
    """Measures the runs of the study that a command names, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("study", type=Path, help="YAML file")
    parser.add_argument("--scale", choices=("tiny", "mini", "paper"), default="tiny")
    parser.add_argument("--runs", nargs="*", help="names; default: all")
    parser.add_argument("--rounds", type=int, default=40, help="turns of each run")
    parser.add_argument("--set", nargs="*", help="SECTION.KEY=VALUE, settings of the base")
    given = parser.parse_args(words)
    read = studies.Study(**yaml.safe_load(given.study.read_text(encoding="utf-8")))
    planned, _ = studies.plan(read, given.scale, read_values(None, given.set))
    names = given.runs or list(planned)
    weights, updates, answers = zip(*(prepare(*planned[name]) for name in names), strict=True)
    update, answer = (measure(functions, given.rounds) for functions in (updates, answers))
    steps = planned[names[0]][2].training.steps
    rows = [
        [
            name,
            f"{weights[at] / 1e6:.2f}",
            f"{1000 * update[at]:.1f}",
            f"{steps * update[0] / update[at]:,.0f}",
            f"{1000 * answer[at]:.1f}",
            f"{answer[0] / answer[at]:.2f}",
        ]
        for at, name in enumerate(names)
    ]
    titles = ["run", "million weights", "ms for an update", "updates in the same time"]
    print("\n".join(markdown_table([*titles, "ms for an answer", "times as fast"], rows)))


if __name__ == "__main__":
    main()
