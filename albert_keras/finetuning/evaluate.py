"""Scores of fine-tuned models on labelled examples."""

from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.finetuning.answer_files import write_answers
from albert_keras.finetuning.finetuned import FinetunedModels, check_answers_folder
from albert_keras.tasks.metrics import Interval
from data_pipeline.errors import InputError


class TaskEvaluation(NamedTuple):
    """Scores on labelled examples.

    Attributes:
        runs: tuple of str. Whose predictions were averaged.
        task, split, metric: str. `split` is that of the task, or the file.
        examples: int.
        scores: dict of str to float. The main metric first.
        interval: Interval. 95 % bootstrap interval of the main metric.
        guessing: dict of str to float, or None. What the best answer that is always the same
            scores on these very examples.
        collapse: str or None. See `Task.collapse`.
        tuned: dict of str to float. What was tuned, see `Task.tune`.
        is_tuned_here: bool. Whether that was done on these very examples: those that chose the
            best checkpoint, too. On others the values from then are taken.
        files: dict. What was written, see `write_answers`.
    """

    runs: tuple[str, ...]
    task: str
    split: str
    metric: str
    examples: int
    scores: dict[str, float]
    interval: Interval
    guessing: dict[str, float] | None
    collapse: str | None
    tuned: dict[str, float]
    is_tuned_here: bool
    files: dict[str, Any] = {}  # never changed


def evaluate_task(
    runs,
    data=None,
    data_dir=None,
    split=None,
    out=None,
    all_seeds=False,
    step="best",
    batch_size=64,
    strategy="auto",
):
    """Scores fine-tuned models; of several, the average of their predictions.

    Args:
        runs: str, Path or sequence of them. See `FinetunedModels`.
        data: str, Path or None. A labelled file as those of the task.
        data_dir: str, Path or None. Folder of the official files; None is that of the training.
        split: str or None. Which of them; None is the one the best checkpoint was chosen by.
        out: str, Path or None. Folder for answers, errors and the picture of confusions.
        all_seeds, step, batch_size, strategy: See `FinetunedModels`.

    Returns:
        TaskEvaluation.

    Raises:
        InputError: If models and examples cannot be used together.
    """
    if data is not None and (split is not None or data_dir is not None):
        other = "split" if split is not None else "data_dir"
        raise InputError(f"Of `data` and `{other}` one should be given. Received: both.")
    check_answers_folder(out)
    models = FinetunedModels(
        runs,
        all_seeds,
        step,
        strategy,
        batch_size,
        data_dir=None if data_dir is None else str(data_dir),
    )
    task = models.task
    if data is not None:
        examples, split = task.read_file(data, labelled=True), Path(data).name
    else:
        split = split or task.dev_splits[0]
        if split in task.test_splits and split not in task.labelled_tests:
            raise InputError(
                f"`{split}` of {task.config.name} has no labels to score. "
                f"`albert-keras predict {models.runs[0].path} --split {split}` answers it."
            )
        examples = task.read(split)
    features, results = models.outputs(examples)
    is_tuned_here = data is None and split == task.dev_splits[0] or not models.tuned
    tuned = task.tune(examples, features, results) if is_tuned_here else models.tuned
    answers = task.answers(examples, features, results, tuned)
    guesses = task.guesses(examples, examples)
    evaluation = TaskEvaluation(
        runs=tuple(str(run.path) for run in models.runs),
        task=task.config.name,
        split=split,
        metric=task.metric,
        examples=len(examples),
        scores=task.scores(examples, answers),
        interval=task.interval(examples, answers),
        guessing=None if guesses is None else task.scores(examples, guesses),
        collapse=task.collapse(answers),
        tuned=tuned,
        is_tuned_here=is_tuned_here,
    )
    if out is None:
        return evaluation
    return evaluation._replace(files=write_answers(out, task, split, examples, answers))
