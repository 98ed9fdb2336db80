"""What all trainings of a fine-tuning share: task, examples, features, settings."""

import dataclasses
import logging
from typing import Any, NamedTuple

import numpy as np

from albert_keras.finetuning.config import FinetuneConfig
from albert_keras.finetuning.source import digest_of
from albert_keras.tasks.build import build_task
from albert_keras.tasks.task import Features, Task
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)


class Examples(NamedTuple):
    """Examples of a split: `examples` list, and `features` of them."""

    examples: list
    features: Features


class TaskData(NamedTuple):
    """What to train on.

    Attributes:
        task: Task.
        config: FinetuneConfig, resolved.
        albert_config: AlbertConfig. With the changes of `config.model`.
        tokenizer: Tokenizer.
        train: Examples.
        dev: dict of str to Examples. By split; the first one decides.
        fingerprints: dict of str. What `run.json` tells two sets of examples apart by.
    """

    task: Task
    config: FinetuneConfig
    albert_config: Any
    tokenizer: Any
    train: Examples
    dev: dict[str, Examples]
    fingerprints: dict[str, str]


def prepare(config, origin, precision, cache=None):
    """Reads the files of a task and lays its examples out.

    Args:
        config: FinetuneConfig.
        origin: InitialWeights. Brings tokenizer and shape of the model.
        precision: str. What "auto" means here.
        cache: Path or None. Folder where features are kept.

    Returns:
        TaskData.

    Raises:
        InputError: If files, settings and model do not go together.
    """
    albert_config = config.model.applied(origin.albert_config)
    config = with_length(config, albert_config)
    task = build_task(config.task)
    train = task.read("train")
    dev = {split: task.read(split) for split in task.dev_splits}
    listing = ", ".join(f"{split} {len(examples):,}" for split, examples in dev.items())
    logger.info("%s: train %s, %s examples", config.task.name, f"{len(train):,}", listing)
    batch_size = config.training.batch_size
    if batch_size > len(train):
        logger.warning(
            "`training.batch_size` %d is more than all %d training examples: each step sees some "
            "of them twice",
            batch_size,
            len(train),
        )
    tokenizer = origin.tokenizer
    train = Examples(train, task.features(train, tokenizer, training=True, cache=cache))
    dev = {
        split: Examples(examples, task.features(examples, tokenizer, cache=cache))
        for split, examples in dev.items()
    }
    rows, length = len(train.features), train.features.max_seq_length
    cut = np.count_nonzero(train.features.lengths >= length)
    if cut > rows / 100 and not task.kind.uses_windows:
        logger.warning(
            "%.0f %% of the training rows fill all of max_seq_length %d: they may have been cut",
            100 * cut / rows,
            length,
        )
    return TaskData(
        task,
        config.resolved(task, albert_config.hidden_size, rows, precision),
        albert_config,
        tokenizer,
        train,
        dev,
        {
            "fingerprint": digest_of(train.examples),
            "dev_fingerprint": digest_of(
                example for split in dev.values() for example in split.examples
            ),
        },
    )


def with_length(config, albert_config):
    """Returns a FinetuneConfig whose `max_seq_length` is told, and fits the model.

    Raises:
        InputError: If the one asked for does not fit.
    """
    longest, asked = albert_config.max_position_embeddings, config.task.max_seq_length
    if asked is not None and asked > longest:
        raise InputError(
            "`max_seq_length` should not exceed `max_position_embeddings` of the model. "
            f"Received: {asked} and {longest}."
        )
    length = asked or min(build_task(config.task).usual_length, longest)
    return config.replace(task=config.task.replace(max_seq_length=length))


def from_random(origin):
    """Returns an InitialWeights of the same shape and tokenizer, without its weights."""
    return dataclasses.replace(origin, path="random", kind="random", step=None, _open=None)
