"""From a pre-trained model to one that solves a task, with what it is to be compared with."""

import logging
from pathlib import Path

from albert_keras.finetuning.answer_files import write_answers
from albert_keras.finetuning.config import FinetuneConfig
from albert_keras.finetuning.results import FinetuneResult, best_seed, read_results, save_results
from albert_keras.finetuning.task_data import from_random, prepare
from albert_keras.finetuning.train_seed import train_seed
from albert_keras.training.distributed.cluster import (
    barrier,
    is_chief,
    noticing_lost_workers,
    num_workers,
)
from albert_keras.training.distributed.strategy import build_strategy, choose_precision
from albert_keras.weights.initial_weights import open_weights
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder

logger = logging.getLogger(__name__)


def finetune(
    origin,
    out,
    config=None,
    seeds=1,
    random_baseline=True,
    from_step=None,
    albert_config=None,
    tokenizer=None,
    cache=None,
    allow_changes=(),
    **flags,
):
    """Fine-tunes a pre-trained model on a task and scores it on development examples.

    The same call goes on with one that was interrupted, and ends in the same weights as one that
    was not. `out` holds a folder of a run for each seed, `seed-N`, and the one of random weights,
    `random`; `results.json`; the answers, the errors and the confusions of the best seed.

    Args:
        origin: str, Path or None. What to begin from, see `open_weights`.
        out: str or Path. Folder to make, or to go on in.
        config: FinetuneConfig or None. None: all comes from `flags`.
        seeds: int or sequence of int. How many trainings, with the seeds that follow
            `training.seed`; or the seeds themselves.
        random_baseline: bool. Whether to train the same model from random weights, too, with the
            first seed: what the pre-training is worth.
        from_step, albert_config, tokenizer: As `step` and the others of `open_weights`.
        cache: str, Path or None. Folder of features, to be used again by other trainings; None is
            `out`/features.
        allow_changes: iterable of str. See `Run.create_or_resume`.
        **flags: Single settings by the keywords of `options_of(FinetuneConfig)`.

    Returns:
        FinetuneResult.

    Raises:
        InputError: If files, settings and model do not go together, or `out` holds something else.
        TrainingStopped, TrainingDiverged, WorkerLost: As `pretrain`.
    """
    config = FinetuneConfig.of({}, **flags) if config is None else config.with_flags(**flags)
    seeds = seeds_of(config, seeds)
    out = Path(out)
    _check_out(out)
    strategy = build_strategy(config.training.strategy)
    with noticing_lost_workers(num_workers(strategy) > 1):
        origin = open_weights(origin, from_step, albert_config, tokenizer)
        cache = out / "features" if cache is None else Path(cache)
        data = prepare(config, origin, choose_precision(strategy), cache)
        trained = [
            train_seed(strategy, data, origin, out / f"seed-{seed}", seed, allow_changes)
            for seed in seeds
        ]
        baseline = None
        if random_baseline and origin.kind != "random":
            logger.info("the same model from random weights (--no-random-baseline leaves it out)")
            start = from_random(origin)
            baseline = train_seed(strategy, data, start, out / "random", seeds[0], allow_changes)
        result = FinetuneResult(
            path=str(out),
            task=config.task.name,
            metric=data.task.metric,
            seeds=tuple(each.result for each in trained),
            majority=_majority(data),
            random=baseline and baseline.result,
            origin=str(origin),
            loaded=tuple(trained[0].loaded),
            examples={split: len(dev.examples) for split, dev in data.dev.items()},
        )
        best = next(each for each in trained if each.result == best_seed(result))
        result = result._replace(tuned=best.tuned)
        if is_chief(strategy):
            result = result._replace(files=_write(out, data, best))
            save_results(out, result)
        barrier(strategy)  # the first worker has written
        if not is_chief(strategy):
            result = read_results(out)
    return result


def seeds_of(config, seeds):
    """Returns the seeds of the trainings: tuple of int.

    Raises:
        InputError: If there is none, or one twice.
    """
    if isinstance(seeds, int):
        first = config.training.seed
        seeds = range(first, first + seeds)
    seeds = tuple(seeds)
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0:
        raise InputError(
            f"`seeds` should be different numbers from 0, at least one. Received: {list(seeds)}."
        )
    return seeds


def _check_out(out):
    """Makes sure that `out` is new, or the folder of a fine-tuning."""
    names = {path.name for path in out.iterdir()} if out.is_dir() else set()
    if "run.json" in names:
        raise InputError(
            f"`{out}` is the folder of a run. A fine-tuning wants one of its own: choose another "
            "--out."
        )
    # A run that was being made when the process was killed has a dot before its name.
    is_begun = names == {"features"} or any(name.startswith(("seed-", ".seed-")) for name in names)
    if not is_begun:
        check_output_folder(out)


def _majority(data):
    """Scores the answers of somebody who does not look, by split."""
    scores = {}
    for split, (examples, _) in data.dev.items():
        guesses = data.task.guesses(data.train.examples, examples)
        if guesses is None:
            return None
        scores[split] = data.task.scores(examples, guesses)
    return scores


def _write(out, data, best):
    """Writes what the best seed answered and where it is wrong; returns the files by split."""
    files = {}
    for number, (split, (examples, _)) in enumerate(data.dev.items()):
        folder = out / split if number else out
        files[split] = write_answers(folder, data.task, split, examples, best.answers[split])
    return files
