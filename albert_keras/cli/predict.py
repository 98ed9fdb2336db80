"""`albert-keras predict`."""

import itertools
from pathlib import Path

import typer

from albert_keras.cli.answer_lines import describe_pretrained
from albert_keras.cli.command import Output, command
from albert_keras.cli.minimal_pairs import score_texts
from albert_keras.cli.parameters import refuse
from albert_keras.cli.typed_inputs import arriving_lines, converted_lines
from albert_keras.formats.detection import detect, kind_of_run
from albert_keras.tasks.answer_table import check_out
from albert_keras.tasks.kind import FIELD_OPTIONS
from albert_keras.tasks.request_checks import check_request
from data_pipeline.errors import InputError
from data_pipeline.text import storage

#: Options that apply to inputs of tasks, to pre-trained exports, to runs, and to tables.
_FIELDS = ("pair", "question", "option")
_FOR_PRETRAINED = ("then", "top_k")
_FOR_RUNS = ("split", "data_dir", "also", "all_seeds")
_OF_TABLES = ("delimiter", "encoding", "skip_bad_rows")
_FOR_TABLES = ("file", "out", "overwrite", "text_column", "pair_column", *_OF_TABLES)


@command()
def predict(
    context: typer.Context,
    model: Path,
    texts: list[str] | None = None,
    then: str | None = None,
    top_k: int = 5,
    score: bool = False,
    mask_rest_of_word: bool = False,
    pair: str | None = None,
    question: str | None = None,
    option: list[str] | None = None,
    file: Path | None = None,
    text_column: str | None = None,
    pair_column: str | None = None,
    split: str | None = None,
    data_dir: Path | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    also: list[Path] | None = None,
    all_seeds: bool = False,
    delimiter: str | None = None,
    encoding: str | None = None,
    skip_bad_rows: bool | None = None,
):
    """Predict with a fine-tuned model, fill masks, or score sentences.

    Examples:
      albert-keras predict albert-mini-en "The old man sat down by the [MASK]."
      albert-keras predict runs/sst-2 "a gripping, funny film"
      albert-keras predict runs/squad "Ada lived in Paris." --question "Where did Ada live?"
      albert-keras predict runs/mail --file new.csv --out answers.csv
      albert-keras predict runs/sst-2 --split test --out submission/
      albert-keras predict saved_models/books "He opened the door." --then "He went in."
      albert-keras predict runs/books --score "The cats sleep." "The cats sleeps."

    A line of stdin may be a JSON object: {"text": ..., "pair": ...}, {"context": ...,
    "question": ..., "options": [...]} or {"words": [...]}, with an optional "id". Missing keys are
    taken from --pair, --question and --option. Lines are answered as they arrive. With --json,
    each answer to a line or to a row of --file is one line of JSON. A file is read as in training;
    --delimiter, --encoding and --skip-bad-rows change that.

    Options:
      model <MODEL>: Export, one of its versions, or the name of a shipped model; fine-tuning or one
        of its runs; with --score, also a pre-training run or a checkpoint.
      texts <TEXT>: Text to process, with [MASK] for a pre-trained export; without TEXT, lines of
        stdin.
      then TEXT: Pre-trained export: text that may follow TEXT.
      top_k: Pre-trained export: candidates per [MASK].
      score: Pre-trained export, run or checkpoint: score each TEXT by its pseudo-log-likelihood.
      mask_rest_of_word: With --score, also mask the later tokens of the same word.
      pair TEXT: Second text of a pair.
      question TEXT: Question about TEXT.
      option TEXT: Option to choose from; may be repeated.
      file: File of examples instead of TEXT, in a format of the task.
      text_column COLUMN (as in training): Column of the text in --file.
      pair_column COLUMN (as in training): Column of the second text in --file.
      split: Split of the official files instead of TEXT, such as test.
      data_dir
      out: Table of answers, .csv or .jsonl, or a folder for files such as a submission.
      overwrite: Replace the table of --out if it exists.
      also --with PATH: Fine-tuning to average with; may be repeated.
      all_seeds ~delimiter ~encoding ~skip_bad_rows
    """
    if score:
        others = (*_FOR_PRETRAINED, *_FIELDS, *_FOR_RUNS, *_FOR_TABLES)
        refuse(context, others, "must not be given with `--score`.")
        return score_texts(model, texts, mask_rest_of_word)
    refuse(context, ("mask_rest_of_word",), "requires `--score`.")
    exported = None
    if kind_of_run(model) == "pretraining":
        others = (*_FIELDS, *_FOR_RUNS, *_FOR_TABLES)
        refuse(context, others, f"requires a fine-tuned model: `{model}` is a pre-training run.")
        return _ask_pretrained(model, texts, then, top_k)
    if not _is_export(model):
        refuse(context, _FOR_PRETRAINED, f"requires an export: `{model}` is a fine-tuning.")
    else:
        from albert_keras.serving.exported_task import read_task
        from albert_keras.serving.layout import version_folder

        exported = read_task(version_folder(model))
        if exported is None:
            others = (*_FIELDS, *_FOR_RUNS, *_FOR_TABLES)
            reason = f"requires a fine-tuned model: `{model}` is a pre-trained export."
            refuse(context, others, reason)
            return _ask_pretrained(model, texts, then, top_k)
        refuse(context, _FOR_RUNS, f"requires a run: `{model}` is an export.")
        reason = f"requires an export of a pre-trained model: `{model}` is fine-tuned."
        refuse(context, _FOR_PRETRAINED, reason)
        _refuse_unused(context, exported.task)
    if file is not None or split is not None:
        if texts:
            raise InputError("`TEXT` must not be given with --file or --split.")
        refuse(context, _FIELDS, "must not be given with --file or --split.")
    sources = {"inputs": file is None and split is None, "file": file, "split": split}
    table = {"delimiter": delimiter, "encoding": encoding, "skip_bad_rows": skip_bad_rows}
    columns = {"text": text_column, "pair": pair_column}
    check_request(sources, data_dir, columns | table)
    check_out(out, file, overwrite)
    if file is not None and not file.is_dir():
        storage.open_to_read(file).close()
    from albert_keras.cli.task_answers import TaskRequest, answer_task

    typed = {"pair": pair, "question": question, "options": option or None}
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
    wanted = (
        "`predict` takes an export or a fine-tuning. Create one with `albert-keras export` or "
        "`albert-keras finetune`."
    )
    return detect(model, ("run", "fine-tuning", "export"), wanted).kind == "export"


def _refuse_unused(context, task):
    """Refuses options of inputs that a task does not have."""
    used = {FIELD_OPTIONS.get(field) for field in task.fields}
    inputs = " and ".join(f"`{field}`" for field in task.fields)
    reason = f"must not be given: the inputs of {task.config.name} are {inputs}."
    refuse(context, [name for name in _FIELDS if f"--{name}" not in used], reason)


def _ask_pretrained(model, texts, then, top_k):
    """Fills masks, or predicts whether each text is followed by `then`."""
    lines = None if texts else arriving_lines()
    first = lines and [next(lines)]  # without any line, no model is loaded
    from albert_keras.serving.predictor import Predictor
    from albert_keras.tasks.predict import Truncation

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
