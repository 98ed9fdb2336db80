"""Answers of fine-tuned models to new examples; no training file is needed."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.finetuning.answer_stream import Truncation
from albert_keras.finetuning.answer_table import (
    check_answer_table,
    check_ending,
    columns_of,
    is_answer_table,
    write_answer_table,
)
from albert_keras.finetuning.finetuned import (
    FinetunedModels,
    check_answers_folder,
    check_table_settings,
)
from albert_keras.tasks.tables.skipped_rows import write_skipped_rows
from albert_keras.tasks.task import known_fields
from data_pipeline.errors import InputError


class Predictions(NamedTuple):
    """Answers of fine-tuned models: `examples` and `answers` are named tuples in the same order."""

    task: str
    examples: list[Any]
    answers: list[Any]
    files: tuple[str, ...] = ()  # what was written


def predict_task(
    runs: str | Path | Sequence[str | Path],
    inputs: Iterable[str | dict] | str | dict | None = None,
    file: str | Path | None = None,
    data_dir: str | Path | None = None,
    split: str | None = None,
    out: str | Path | None = None,
    all_seeds: bool = False,
    step: int | str | None = "best",
    batch_size: int = 64,
    strategy: str = "auto",
    text: str | int | None = None,
    pair: str | int | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
    skip_bad_rows: bool | None = None,
    overwrite: bool = False,
) -> Predictions:
    """Answers new examples with fine-tuned models; the predictions of several are averaged.

    Args:
        runs: str, Path or sequence of them. See `FinetunedModels`.
        inputs: list of dict of str or of str, or None. See `FinetunedModels.examples`.
        file: str, Path or None. Instead: a file in the format of the task, without answers.
        split: str or None. Instead: a split of the task's files, such as "test".
        data_dir: str, Path or None. Folder of these files; None means the training's.
        out: str, Path or None. Folder for the task's official files, as leaderboards take them; or
            a .csv or .jsonl with the columns of the examples and of their answers, see
            `write_answer_table`.
        all_seeds, step, batch_size, strategy: See `FinetunedModels`.
        text, pair: str, int or None. Columns of `file` if they are not those of the training.
        delimiter, encoding, skip_bad_rows: How to read `file`, if not as in training. Skipped rows
            have no example; they are listed in `out` if that is a folder.
        overwrite: bool. Whether an existing .csv or .jsonl `out` is replaced.

    Returns:
        Predictions.

    Raises:
        InputError: If not exactly one of `inputs`, `file` and `split` is given, or models and
            examples do not fit together.

    Example:
        predict_task("runs/sst-2", ["a gripping, funny film"]).answers[0].label
    """
    changes = {"delimiter": delimiter, "encoding": encoding, "skip_bad_rows": skip_bad_rows}
    check_request({"inputs": inputs, "file": file, "split": split}, data_dir, text, pair, changes)
    check_out(out, file, overwrite)
    changes |= {"data_dir": data_dir and str(data_dir), "text": text, "pair": pair}
    models = FinetunedModels(runs, all_seeds, step, strategy, batch_size, **changes)
    task = models.task
    columns: list[dict[str, Any]] | None = None
    if inputs:
        examples = models.examples([inputs] if isinstance(inputs, str | dict) else list(inputs))
    elif file:
        examples, columns = task.read_rows(file)
    else:
        examples = task.read(split)
    write_skipped_rows(None if is_answer_table(out) else out, task.skipped_rows)
    answers = models.answers(examples)
    truncated = Truncation()
    truncated.add(answers)
    truncated.warn()
    files: tuple[str, ...] = ()
    if is_answer_table(out):
        columns = columns or [known_fields(example) for example in examples]
        rows = zip(columns, answers, strict=True)
        write_answer_table(out, rows, columns_of(columns))
        files = (str(out),)
    elif out is not None:
        files = tuple(map(str, task.write(out, split or "new", examples, answers)))
    return Predictions(task.config.name, examples, answers, files)


def check_request(
    sources: Mapping[str, Any],
    data_dir: str | Path | None,
    text: str | int | None,
    pair: str | int | None,
    table: dict[str, Any],
):
    """Raises InputError unless there is one source of examples, and the settings suit it.

    Args:
        sources: `inputs`, `file` and `split` by name.
        data_dir, text, pair: As in `predict_task`.
        table: `delimiter`, `encoding` and `skip_bad_rows` by name.
    """
    given = [name for name, value in sources.items() if value]
    if len(given) != 1:
        raise InputError(
            "Give exactly one of `inputs`, `file` and `split` to predict. Received: "
            f"{' and '.join(given) or 'none'}."
        )
    if sources["split"] is None and data_dir is not None:
        raise InputError(f"`data_dir` requires `split`. Received: {data_dir} and {given[0]}.")
    if sources["file"] is None and (text is not None or pair is not None):
        raise InputError(f"Columns of text and pair require `file`. Received: {given[0]}.")
    check_table_settings(table, {"file": sources["file"]})


def check_out(out: str | Path | None, file: str | Path | None, overwrite: bool):
    """Raises InputError, before any model answers, if answers cannot be written to `out`."""
    check_ending(out)
    if not is_answer_table(out):
        if overwrite:
            raise InputError(
                "`--overwrite` requires an `--out` that ends in .csv or .jsonl. "
                f"Received: {out or 'no --out'}."
            )
        check_answers_folder(out)
        return
    check_answer_table(out, overwrite)
    if file is not None and Path(out).resolve() == Path(file).resolve():
        raise InputError(f"`--out` must not be the file of the examples. Received: `{out}`.")
