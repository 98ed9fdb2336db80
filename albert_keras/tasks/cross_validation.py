"""Cross-validation of a fine-tuning: each row is scored by a model that did not train on it."""

import logging
from pathlib import Path

import tensorflow as tf

from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.text_rows import TextRows
from albert_keras.runs.run import Run
from albert_keras.tasks.baselines import baseline_answers
from albert_keras.tasks.example_source import digest_of
from albert_keras.tasks.labels import in_parts
from albert_keras.tasks.task_data import Examples, TaskData, digest_rows
from albert_keras.tasks.train_seed import SeedOutcome, train_seed
from albert_keras.training.cluster import is_chief

#: The split of all rows, which is the first of a result; and the folder with a run for each part.
SPLIT = "cross-validation"
PARTS = 5

logger = logging.getLogger(__name__)


def cross_validate(
    strategy: tf.distribute.Strategy,
    data: TaskData,
    initial_weights: OpenedModel,
    out: Path,
    outcome: SeedOutcome,
    baselines: dict[str, dict[str, list]],
) -> tuple[TaskData, SeedOutcome, dict[str, dict[str, list]]]:
    """Trains as often as there are parts, each time without one, and answers this part.

    A part is scored at the end of its training only, so that it chooses no weights. The rows are
    those of the training and those held out for its development.

    Args:
        out: Folder of the fine-tuning; the runs of the parts are in it, and resume.
        outcome: Of the training of the model itself, whose seed the parts have.
        baselines: Answers to the development examples, by name and split.

    Returns:
        The arguments `data`, `outcome` and `baselines` with the split of all rows as the first one.
    """
    task, split = data.task, next(iter(data.dev))
    examples, answers = [], []
    of_baselines: dict[str, list] = {name: [] for name in baselines}
    rows = data.train.examples + data.dev[split].examples
    for number, (rest, part) in enumerate(in_parts(rows, PARTS), start=1):
        logger.info("cross-validation: part %d of %d, %d rows", number, PARTS, len(part))
        divided = _without(data, rest, part)
        folder = out / SPLIT / f"part-{number}"
        trained = train_seed(strategy, divided, initial_weights, folder, outcome.result.seed)
        if is_chief(strategy) and not data.config.training.keep_optimizer_state:
            checkpoints = Run.open(folder).checkpoints
            checkpoints.keep_weights(trained.result.best_step, trained.result.last_step)
        examples += part
        answers += trained.answers[SPLIT]
        for name, found in baseline_answers(strategy, divided, initial_weights).items():
            of_baselines[name] += found[SPLIT]
    result = outcome.result._replace(
        scores={SPLIT: task.scores(examples, answers)} | outcome.result.scores,
        interval=task.interval(examples, answers),
        collapse=task.collapse(answers),
    )
    outcome = outcome._replace(result=result, answers={SPLIT: answers} | outcome.answers)
    baselines = {name: {SPLIT: of_baselines[name]} | baselines[name] for name in baselines}
    preprocessor = task.build_preprocessor(data.tokenizer)
    everything = Examples(examples, TextRows(preprocessor, task.columns(examples)))
    return data._replace(dev={SPLIT: everything} | data.dev), outcome, baselines


def _without(data, rest, part):
    """Returns the TaskData of a training on the `rest`, which is scored on a part at its end."""
    task, training = data.task, data.config.training
    preprocessor, targets = task.build_preprocessor(data.tokenizer), task.targets(rest)
    training = training.replace(evaluate_every=training.steps, patience=None)
    train = TextRows(preprocessor, task.columns(rest), targets, task.weights(targets))
    fingerprint = digest_of(rest)
    return data._replace(
        config=data.config.replace(training=training),
        train=Examples(rest, train),
        dev={SPLIT: Examples(part, TextRows(preprocessor, task.columns(part)))},
        fingerprints={"fingerprint": fingerprint, "dev_fingerprint": digest_of(part)},
        trained=(digest_rows(rest, fingerprint), *data.trained[1:]),
        overlaps={},
    )
