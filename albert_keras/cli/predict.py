"""`albert-keras predict`."""

import itertools
from pathlib import Path

from albert_keras.cli import options
from albert_keras.cli.answer_lines import describe_pretrained
from albert_keras.cli.command import Output, command
from albert_keras.cli.minimal_pairs import score_texts
from albert_keras.cli.options import argument, option
from albert_keras.cli.typed_inputs import arriving_lines, converted_lines
from albert_keras.formats.foreign_hint import foreign_hint
from albert_keras.runs.kind import kind_of_run
from albert_keras.serving.layout import EXPORT_RECORD, versions
from albert_keras.shipped_models import find_model
from albert_keras.tasks.kind import FIELD_OPTIONS
from albert_keras.tasks.request_checks import check_out, check_request
from data_pipeline.errors import InputError, Mistake
from data_pipeline.text import storage


@command()
def predict(
    model: Path = argument(
        ...,
        "Export, one of its versions, or the name of a shipped model; fine-tuning or one of its "
        "runs; with --score, also a pre-training run or a checkpoint.",
    ),
    texts: list[str] | None = argument(
        None,
        "Text to process, with [MASK] for a pre-trained export; without TEXT, lines of stdin.",
        metavar="TEXT",
    ),
    then: str | None = option(
        None, "Pre-trained export: text that may follow TEXT.", metavar="TEXT"
    ),
    top_k: int | None = option(None, "Pre-trained export: candidates per [MASK].", shown="5"),
    score: bool = option(
        False,
        "Pre-trained export, run or checkpoint: score each TEXT by its pseudo-log-likelihood.",
        "--score",
    ),
    mask_rest_of_word: bool = option(
        False, "With --score, also mask the later tokens of the same word.", "--mask-rest-of-word"
    ),
    pair: str | None = option(None, "Second text of a pair.", metavar="TEXT"),
    question: str | None = option(None, "Question about TEXT.", metavar="TEXT"),
    option_: list[str] | None = option(
        None, "Option to choose from; may be repeated.", "--option", metavar="TEXT"
    ),
    file: Path | None = option(None, "File of examples instead of TEXT, in a format of the task."),
    text_column: str | None = option(
        None, "Column of the text in --file.", metavar="COLUMN", shown="as in training"
    ),
    pair_column: str | None = option(
        None, "Column of the second text in --file.", metavar="COLUMN", shown="as in training"
    ),
    split: str | None = option(None, "Split of the official files instead of TEXT, such as test."),
    data_dir: Path | None = options.DATA_DIR,
    out: Path | None = option(
        None, "Table of answers, .csv or .jsonl, or a folder for files such as a submission."
    ),
    overwrite: bool = option(False, "Replace the table of --out if it exists.", "--overwrite"),
    also: list[Path] | None = option(
        None, "Fine-tuning to average with; may be repeated.", "--with", metavar="PATH"
    ),
    all_seeds: bool = options.ALL_SEEDS,
    delimiter: str | None = options.DELIMITER,
    encoding: str | None = options.ENCODING,
    skip_bad_rows: bool | None = options.SKIP_BAD_ROWS,
):
    """Predict with a fine-tuned model, fill masks, or score sentences.

    \b
    Examples:
      albert-keras predict albert-mini-en "The old man sat down by the [MASK]."
      albert-keras predict runs/sst-2 "a gripping, funny film"
      albert-keras predict runs/squad "Ada lived in Paris." --question "Where did Ada live?"
      albert-keras predict runs/mail --file new.csv --out answers.csv
      albert-keras predict runs/sst-2 --split test --out submission/
      albert-keras predict saved_models/sst-2 "a gripping, funny film"
      albert-keras predict saved_models/books "The capital of France is [MASK]."
      albert-keras predict saved_models/books "He opened the door." --then "He went in."
      albert-keras predict runs/books --score "The cats sleep." "The cats sleeps."

    A line of stdin may be a JSON object: {"text": ..., "pair": ...}, {"context": ...,
    "question": ..., "options": [...]} or {"words": [...]}, with an optional "id". Missing keys are
    taken from --pair, --question and --option. Lines are answered as they arrive. With --json,
    each answer to a line or to a row of --file is one line of JSON.
    """
    fields = {"--pair": pair, "--question": question, "--option": option_ or None}
    for_pretrained = {"--then": then, "--top-k": top_k}
    for_runs = {"--split": split, "--data-dir": data_dir, "--with": also or None}
    for_runs |= {"--all-seeds": all_seeds or None}
    columns = {"text": text_column, "pair": pair_column}
    table = {"delimiter": delimiter, "encoding": encoding, "skip_bad_rows": skip_bad_rows}
    for_tables = {"--file": file, "--out": out, "--overwrite": overwrite or None}
    for_tables |= {f"--{name}-column": value for name, value in columns.items()}
    for_tables |= {f"--{name.replace('_', '-')}": value for name, value in table.items()}
    if score:
        given = for_pretrained | fields | for_runs | for_tables
        _refuse(given, "must not be given with `--score`")
        return score_texts(model, texts, mask_rest_of_word)
    _refuse({"--mask-rest-of-word": mask_rest_of_word or None}, "requires `--score`")
    exported = None
    if not _is_export(model):
        _refuse(for_pretrained, f"requires an export: `{model}` is a fine-tuning")
    else:
        from albert_keras.serving.exported_task import read_task
        from albert_keras.serving.layout import version_folder

        exported = read_task(version_folder(model))
        if exported is None:
            reason = f"requires a fine-tuned model: `{model}` is a pre-trained export"
            _refuse(fields | for_runs | for_tables, reason)
            return _ask_pretrained(model, texts, then, 5 if top_k is None else top_k)
        _refuse(for_runs, f"requires a run: `{model}` is an export")
        reason = f"requires an export of a pre-trained model: `{model}` is fine-tuned"
        _refuse(for_pretrained, reason)
        _refuse_unused(fields, exported.task)
    if file is not None or split is not None:
        _refuse({"TEXT": texts or None} | fields, "must not be given with --file or --split")
    sources = {"inputs": file is None and split is None, "file": file, "split": split}
    check_request(sources, data_dir, text_column, pair_column, table)
    check_out(out, file, overwrite)
    if file is not None and not file.is_dir():
        storage.open_to_read(file).close()
    from albert_keras.cli.task_answers import TaskRequest, answer_task

    typed = {"pair": pair, "question": question, "options": option_ or None}
    return answer_task(
        TaskRequest(
            [model, *(also or ())],
            exported,
            all_seeds,
            texts or [],
            {name: value for name, value in typed.items() if value is not None},
            file,
            columns,
            table,
            split,
            data_dir,
            out,
            overwrite,
        )
    )


def _is_export(model):
    """Returns whether a path is of an export, not of a fine-tuning or a run."""
    model = find_model(model)
    if not model.is_dir():
        raise InputError(f"The folder `{model}` does not exist. Give an export or a fine-tuning.")
    if kind_of_run(model) is not None:
        return False
    marks = (model / "saved_model.pb", model / EXPORT_RECORD)
    if not any(mark.is_file() for mark in marks) and not versions(model):
        raise InputError(
            f"`{model}` contains no exported model and no fine-tuning. Create one with "
            "`albert-keras export` or `albert-keras finetune`." + foreign_hint(model),
            Mistake.NO_EXPORT,
        )
    return True


def _refuse(given, reason):
    """Refuses options (dict of name -> value, None if not given) that would have no effect."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"`{name}` {reason}.")


def _refuse_unused(fields, task):
    """Refuses options of inputs that a task does not have."""
    used = {FIELD_OPTIONS.get(field) for field in task.fields}
    unused = {flag: value for flag, value in fields.items() if flag not in used}
    inputs = " and ".join(f"`{field}`" for field in task.fields)
    _refuse(unused, f"must not be given: the inputs of {task.config.name} are {inputs}")


def _ask_pretrained(model, texts, then, top_k):
    """Fills masks, or predicts whether each text is followed by `then`."""
    lines = None if texts else arriving_lines()
    first = lines and [next(lines)]  # without any line, no model is loaded
    from albert_keras.serving.predictor import Predictor
    from albert_keras.tasks.answer_stream import Truncation

    predictor = Predictor(model)

    def answers():
        truncated = Truncation()
        batches = [texts]
        if lines is not None:
            arriving = itertools.chain(first, lines)
            batches = converted_lines(arriving, lambda _, line: line)
        for several in batches:
            if then is None:
                found = predictor.fill_mask(several, top_k)
            else:
                found = predictor.sentence_order(several, [then] * len(several))
            truncated.add(found)
            yield from found
        truncated.warn()

    if texts:
        found = list(answers())
        shown = [line for answer in found for line in describe_pretrained(answer)]
        return Output([_plain(answer) for answer in found], shown)
    shown = (line for answer in answers() for line in describe_pretrained(answer))
    return Output((_plain(answer) for answer in answers()), shown)


def _plain(answer):
    value = answer._asdict()
    if "masks" in value:
        value["masks"] = [[entry._asdict() for entry in mask] for mask in value["masks"]]
    return value
