"""`albert-keras predict`."""

import re
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from albert_keras.cli.arguments import check_files
from albert_keras.cli.command import Output, command
from albert_keras.cli.options import DataDir, Encoding, SkipBadRows
from albert_keras.cli.typed_inputs import lines_of_stdin
from albert_keras.formats.detection import EXPORT_RECORD, detect, read_export_record
from albert_keras.report import count_of, percent
from albert_keras.tasks.answer_table import check_out, check_request, is_answer_table, with_answers
from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import parse_json

_KINDS = ("run", "fine-tuning", "export")
_WANTED = (
    "It must be a fine-tuning, one of its runs, or its export. Create one with `albert-keras "
    "finetune`."
)


@command()
def predict(
    model: Path,
    inputs: Annotated[list[str] | None, Argument(metavar="TEXT")] = None,
    pair: str | None = None,
    question: str | None = None,
    options: Annotated[list[str] | None, Option("--option")] = None,
    file: Path | None = None,
    split: str | None = None,
    data_dir: DataDir = None,
    out: Path | None = None,
    encoding: Encoding = None,
    skip_bad_rows: SkipBadRows = None,
):
    """Answer texts, lines, a file or a split with a fine-tuned model.

    Examples:
      albert-keras predict runs/sst-2 "a gripping, funny film"
      albert-keras predict runs/squad "Ada lived in Paris." --question "Where did Ada live?"
      albert-keras predict runs/mail --file new.csv --out answers.csv
      albert-keras predict runs/sst-2 --split test --out answers.csv

    A line of stdin may be a JSON object: {"text": ..., "pair": ...}, {"context": ...,
    "question": ..., "options": [...]} or {"words": [...]}, with an optional "id". Missing keys are
    taken from --pair, --question and --option. With --json, each answer to a line or to a row of
    --file is one line of JSON. A file is read as in training; --encoding and --skip-bad-rows change
    that.

    Args:
      model: Fine-tuning, one of its runs, its export, or a version of the export.
      inputs: Text to answer; without TEXT, --file and --split, the lines of stdin.
      pair: Second text of a pair.
      question: Question about TEXT.
      options: Option to choose from; may be repeated.
      file: File of examples instead of TEXT, with the columns of the training file.
      split: Split of the official files instead of TEXT, such as test.
      out: Table of answers, .csv or .jsonl, or a folder for the files of the task.
    """
    place = _finetuned(model)
    typed = {"pair": pair, "question": question, "options": options or None}
    fields = {name: value for name, value in typed.items() if value is not None}
    reads_lines = not inputs and file is None and split is None
    if fields and not (inputs or reads_lines):
        raise InputError(
            f"`{next(iter(fields))}` must not be given with `file` or `split`, whose examples have "
            "their own."
        )
    reading = {"encoding": encoding, "skip_bad_rows": skip_bad_rows}
    sources = {"inputs": inputs or reads_lines, "file": file, "split": split}
    check_request(sources, data_dir, reading)
    check_out(out)
    check_files(file)
    given = [typed_fields(text, fields) for text in inputs or ()]
    if reads_lines:  # before TensorFlow is imported
        given = [line_fields(number, line, fields) for number, line in lines_of_stdin()]
    from albert_keras.tasks.predict import predict_task

    answered = predict_task(
        _opened(place),
        given or None,
        file=file,
        split=split,
        data_dir=data_dir,
        out=out,
        **reading,
    )
    if out is not None:
        return _written(answered, out)
    values = answered.answers if file is None else with_answers(answered.rows, answered.answers)
    values = iter(values) if reads_lines else values  # a line of JSON for each
    return Output(values, map(describe_answer, answered.examples, answered.answers))


def _finetuned(model):
    """Returns the Place of a fine-tuned model; InputError for another one."""
    place = detect(model, _KINDS, _WANTED)
    is_finetuned = place.run_kind == "finetuning"
    if place.kind == "export":
        record = read_export_record(place.path)
        if not record:
            raise InputError(
                f"`{model}` is a SavedModel of another program: it has no {EXPORT_RECORD}, which "
                f"says what it is for. {_WANTED}"
            )
        is_finetuned = bool(record.get("task"))
    if not is_finetuned:
        raise InputError(
            f"`{model}` is a pre-trained model, which has learned no task. Fine-tune it with "
            "`albert-keras finetune`; `albert-keras fill-mask` and `albert-keras sentence-order` "
            "ask it what it has learned.",
            Mistake.NOT_FINETUNED,
        )
    return place


def _opened(place):
    """Returns what `predict_task` takes: the Predictor of an export, or the place of a run."""
    if place.kind != "export":
        return place
    from albert_keras.serving.predictor import Predictor

    return Predictor(place)


def _written(answered, out):
    """Returns the Output of Predictions that were written."""
    values = answered.answers
    if is_answer_table(out):
        values = {"answers": len(values), "files": list(answered.files)}
    count = count_of(len(answered.answers), "answer")
    return Output(values, [f"{count}: {', '.join(answered.files)}"])


def typed_fields(text, options):
    """Returns the fields of an input that is a text; `options` are fields from the command line."""
    name = "context" if {"question", "options"} & options.keys() else "text"
    return {name: text} | options


def line_fields(number, line, options):
    """Returns the fields of a line, a text or a JSON object; `options` fill in missing ones.

    Raises:
        InputError: If the line starts with `{` and is not a JSON object; it names the `number`.
    """
    if not line.startswith("{"):
        return typed_fields(line, options)
    try:
        return options | parse_json(line)
    except ValueError as error:
        raise InputError(
            f"Line {number} of stdin starts with {{ but is not a valid JSON object: {error}. Write "
            'a text that starts with { as {"text": ...}.'
        ) from None


def describe_answer(example, answer):
    """Returns one line that describes an answer to an example."""
    if hasattr(answer, "tags"):
        pairs = zip(answer.words, answer.tags, strict=True)
        line = " ".join(word if tag == "O" else f"{word}/{tag}" for word, tag in pairs)
    elif hasattr(answer, "labels"):
        labels = [f"{name} {percent(answer.probabilities[name])}" for name in answer.labels]
        line = f"{', '.join(labels) or '(no label)'}  {_shown(example)}"
    elif hasattr(answer, "scores"):
        scores = ", ".join(f"{name} {score:.3f}" for name, score in answer.scores.items())
        line = f"{scores}  {_shown(example)}"
    elif hasattr(answer, "score"):
        line = f"{answer.score:7.3f}  {_shown(example)}"
    elif hasattr(answer, "label"):
        line = f"{answer.label}  {percent(answer.probability)}  {_shown(example)}"
    else:
        text = answer.option if hasattr(answer, "option") else answer.text or "(no answer)"
        line = f"{text}  {percent(answer.probability)}  {example.question}"
    return re.sub(r"\s*[\n\r\v\f\x85\u2028\u2029]\s*", " ", line) + truncation(answer)


def truncation(answer):
    """Returns a note of what a model did not read, "" if it read all."""
    for noun in ("token", "word"):
        if count := getattr(answer, f"dropped_{noun}s", 0):
            return f"  (truncated: {count_of(count, noun)} not read)"
    return ""


def _shown(example):
    return example.first if example.second is None else f"{example.first} | {example.second}"
