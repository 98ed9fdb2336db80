"""What all trainings of a fine-tuning share: task, examples, rows, settings."""

import logging
from typing import NamedTuple

import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.text_rows import Rows, TextRows
from albert_keras.runs.trained_data import ROWS, Digests, Overlap, check_overlap, read_digests
from albert_keras.tasks.example_report import IN_TRAINING, report_examples
from albert_keras.tasks.example_source import digest_of
from albert_keras.tasks.examples import digest_of_texts, normalised, row_of
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.kinds import KINDS_OF_TEXTS, build_task
from albert_keras.tasks.task import Task
from albert_keras.tasks.task_config import JOINT_FROM, MANY_LABELS, TaskConfig
from data_pipeline.errors import InputError, Mistake
from data_pipeline.settings import did_you_mean
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Examples of a split whose tokens are counted for the report, at regular distances.
_MOST_ENCODED = 2000

logger = logging.getLogger(__name__)


class Examples(NamedTuple):
    """Examples of a split, and their rows."""

    examples: list
    rows: Rows


class TaskData(NamedTuple):
    """What to train on."""

    task: Task
    config: FinetuneConfig  # resolved
    albert_config: AlbertConfig  # with the changes of `config.model`
    tokenizer: Tokenizer
    train: Examples
    dev: dict[str, Examples]  # by split; the first one determines the best checkpoint
    fingerprints: dict[str, str]  # identify the examples in `run.json`
    #: Digests of the training examples, then of what the initial weights were fine-tuned on.
    trained: tuple[Digests, ...]
    overlaps: dict[str, Overlap]  # by split of `dev`: how many examples were trained on


def prepare(config: FinetuneConfig, initial_weights: OpenedModel, precision: str) -> TaskData:
    """Reads the files of a task and encodes its examples.

    Args:
        precision: Value for the precision "auto".

    Raises:
        InputError: If files, settings and model do not fit together, or all development examples
            are training examples.
    """
    albert_config = config.model.applied(initial_weights.albert_config)
    config = _with_length(config, albert_config)
    config = config.replace(task=with_pair_encoding(config.task, albert_config.hidden_size))
    task, tokenizer = build_task(config.task), initial_weights.tokenizer
    config.model.check(albert_config, task)
    train = task.read("train")
    dev = {split: task.read(split) for split in task.dev_splits}
    task.config = with_pooling(config.task, task, albert_config)
    config = config.replace(task=task.config)
    _check_metric(task, train, next(iter(dev.values())))
    listing = ", ".join(f"{split} {len(examples):,}" for split, examples in dev.items())
    logger.info("Examples of %s: train %s, %s", config.task.name, f"{len(train):,}", listing)
    fingerprints = {
        "fingerprint": digest_of(train),
        "dev_fingerprint": digest_of(example for examples in dev.values() for example in examples),
    }
    _log_reports(report_examples(task, {"train": train, **dev}, tokenizer, _MOST_ENCODED))
    trained = (digest_rows(train, fingerprints["fingerprint"]),)
    if initial_weights.kind != "random":  # a fine-tuned run was trained on its examples, too
        earlier = read_digests(initial_weights.place or initial_weights.path, ROWS)
        trained += () if earlier is None else (earlier,)
    all_trained, overlaps = Digests.merged(trained), {}
    for split, examples in dev.items():
        compared = all_trained, digest_rows(examples), ROWS, config.task.dev or split
        overlaps[split] = check_overlap(*compared, Mistake.DEV_IS_TRAIN)
    preprocessor, targets = task.build_preprocessor(tokenizer), task.targets(train)
    weights = task.weights(targets)
    train = Examples(train, TextRows(preprocessor, task.columns(train), targets, weights))
    dev = {
        split: Examples(examples, TextRows(preprocessor, task.columns(examples)))
        for split, examples in dev.items()
    }
    rows = sum(len(each.rows) for each in dev.values())
    config = config.resolved(task, albert_config.hidden_size, len(train.rows), precision, rows)
    return TaskData(
        task, config, albert_config, tokenizer, train, dev, fingerprints, trained, overlaps
    )


def digest_rows(examples: list, fingerprint: str = "") -> Digests:
    """Digests what a model reads of examples, see `row_of`, apart from small differences.

    Neither labels nor ids make a difference, nor options of a question; see `normalised`.
    """
    numbers = (digest_of_texts(map(normalised, row_of(example))) for example in examples)
    fingerprints = (fingerprint,) if fingerprint else ()
    return Digests(np.fromiter(numbers, np.uint64, len(examples)), fingerprints)


def _check_metric(task, train, dev):
    """Raises InputError unless the metric that was chosen is a score of the task."""
    if task.config.metric is None:
        return
    names = [name for name in task.scores(dev, task.guesses(train, dev)) if "error" not in name]
    if task.metric not in names:
        known = did_you_mean(task.metric, names)
        raise InputError(f"`task.metric` {task.metric} is no score of this task{known}")


def _log_reports(reports):
    """Logs what the examples are like, and warnings about them."""
    for split, report in reports.items():
        for finding in report.findings:
            # `check_overlap` reports what is in the training examples.
            if finding.is_good is not True and finding.name != IN_TRAINING:
                level = logging.INFO if finding.is_good is None else logging.WARNING
                logger.log(level, "%s: %s: %s", split, finding.name, finding.text)


def with_pair_encoding(config: TaskConfig, hidden_size: int) -> TaskConfig:
    """Returns a TaskConfig that says how pairs are encoded, and logs the rule that chose it."""
    if config.pair_encoding != "auto" or not build_task(config).compares_pairs:
        return config
    encoding = "separate" if hidden_size < JOINT_FROM else "joint"
    logger.info(
        "pair encoding: %s, by the rule for models of its size: separate below a hidden size of "
        "%d, here %d. Not measured on these rows; `pair_encoding` chooses the other.",
        encoding,
        JOINT_FROM,
        hidden_size,
    )
    return config.replace(pair_encoding=encoding)


def with_pooling(config: TaskConfig, task: Task, albert_config: AlbertConfig) -> TaskConfig:
    """Returns a TaskConfig that says what of a sequence is the vector of a text, if one is read."""
    if config.pooling != "auto" or task.kind not in KINDS_OF_TEXTS:
        return config
    is_small = albert_config.hidden_size < JOINT_FROM and albert_config.sharing != "none"
    has_many = len(task.labels) >= MANY_LABELS and not task.takes_pair
    is_mean = task.kind == "similarity" or is_small and has_many
    return config.replace(pooling="mean" if is_mean else "pooler")


def _with_length(config, albert_config):
    """Returns a FinetuneConfig with a `max_seq_length` that fits the model; else InputError."""
    longest, length = albert_config.max_position_embeddings, config.task.max_seq_length
    if length is not None and length > longest:
        raise InputError(
            "`max_seq_length` must not exceed `max_position_embeddings` of the model. "
            f"Received: {length} and {longest}.",
            Mistake.TOO_LONG,
        )
    length = length or min(build_task(config.task).usual_length, longest)
    return config.replace(task=config.task.replace(max_seq_length=length))
