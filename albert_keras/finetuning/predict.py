"""New text in, answers of fine-tuned models out: no training file is needed."""

from typing import Any, NamedTuple

from albert_keras.finetuning.finetuned import FinetunedModels, check_answers_folder
from data_pipeline.errors import InputError


class Predictions(NamedTuple):
    """Answers of fine-tuned models.

    Attributes:
        task: str.
        examples, answers: list of named tuples, in the same order.
        files: tuple of str. What was written.
    """

    task: str
    examples: list[Any]
    answers: list[Any]
    files: tuple[str, ...] = ()


def predict_task(
    runs,
    inputs=None,
    file=None,
    data_dir=None,
    split=None,
    out=None,
    all_seeds=False,
    step="best",
    batch_size=64,
    strategy="auto",
    text=None,
    pair=None,
):
    """Answers new examples with fine-tuned models; of several, predictions are averaged.

    Args:
        runs: str, Path or sequence of them. See `FinetunedModels`.
        inputs: list of dict of str or of str, or None. What was typed, see
            `FinetunedModels.examples`.
        file: str, Path or None. Instead: a file as those of the task, without answers.
        split: str or None. Instead: a split of the task's files, such as "test".
        data_dir: str, Path or None. Folder of these files; None is that of the training.
        out: str, Path or None. Folder for the files of the task, for leaderboards too.
        all_seeds, step, batch_size, strategy: See `FinetunedModels`.
        text, pair: str, int or None. Columns of `file` where they are not those of the training.

    Returns:
        Predictions.

    Raises:
        InputError: If not exactly one of `inputs`, `file` and `split` is given, or models and
            examples cannot be used together.
    """
    given = [
        name for name, value in (("inputs", inputs), ("file", file), ("split", split)) if value
    ]
    if len(given) != 1:
        raise InputError(
            "What to answer should be texts, a file or a split, one of the three. Received: "
            f"{' and '.join(given) or 'none'}."
        )
    if split is None and data_dir is not None:
        raise InputError(f"`data_dir` is for a split. Received: {data_dir} and {given[0]}.")
    if file is None and (text is not None or pair is not None):
        raise InputError(f"Columns of text and pair are for a file. Received: {given[0]}.")
    check_answers_folder(out)
    changes = {"data_dir": data_dir and str(data_dir), "text": text, "pair": pair}
    models = FinetunedModels(runs, all_seeds, step, strategy, batch_size, **changes)
    task = models.task
    if inputs:
        examples = models.examples([inputs] if isinstance(inputs, str | dict) else list(inputs))
    elif file:
        examples = task.read_file(file, labelled=False)
    else:
        examples = task.read(split)
    answers = models.answers(examples)
    files = ()
    if out is not None:
        files = tuple(map(str, task.write(out, split or "new", examples, answers)))
    return Predictions(task.config.name, examples, answers, files)
