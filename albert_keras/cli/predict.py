"""`albert-keras predict`."""

import json
import re
import sys
from pathlib import Path

import typer

from albert_keras.cli import options
from albert_keras.cli.command import Output, command
from albert_keras.cli.options import argument, option
from albert_keras.cli.output import count_of, percent
from albert_keras.serving.layout import versions
from albert_keras.tasks.kinds import FIELD_OPTIONS
from data_pipeline.errors import InputError


@command()
def predict(
    model: Path = argument(..., "Export or version of it; fine-tuning or run of it."),
    texts: list[str] | None = argument(
        None,
        "Text to process, with [MASK] for a pre-trained export; without TEXT, lines of stdin.",
        metavar="TEXT",
    ),
    then: str | None = option(
        None, "Pre-trained export: text that may follow TEXT.", metavar="TEXT"
    ),
    top_k: int | None = option(None, "Pre-trained export: candidates per [MASK].", shown="5"),
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
    out: Path | None = option(None, "Folder for files of predictions, such as a submission."),
    also: list[Path] | None = option(
        None, "Fine-tuning to average with; may be repeated.", "--with", metavar="PATH"
    ),
    all_seeds: bool = options.ALL_SEEDS,
    delimiter: str | None = options.DELIMITER,
    encoding: str | None = options.ENCODING,
    skip_bad_rows: bool | None = options.SKIP_BAD_ROWS,
):
    """Predict with a fine-tuned model, or fill masks.

    \b
    Examples:
      albert-keras predict runs/sst-2 "a gripping, funny film"
      albert-keras predict runs/squad "Ada lived in Paris." --question "Where did Ada live?"
      albert-keras predict runs/sst-2 --split test --out submission/
      albert-keras predict saved_models/sst-2 "a gripping, funny film"
      albert-keras predict saved_models/books "The capital of France is [MASK]."
      albert-keras predict saved_models/books "He opened the door." --then "He went in."

    A line of stdin may be a JSON object: {"text": ..., "pair": ...}, {"context": ...,
    "question": ..., "options": [...]} or {"words": [...]}, with an optional "id". Missing keys are
    taken from --pair, --question and --option.
    """
    fields = {"--pair": pair, "--question": question, "--option": option_ or None}
    for_pretrained = {"--then": then, "--top-k": top_k}
    if not _is_export(model):
        _refuse(for_pretrained, f"requires an export: `{model}` is a fine-tuning")
        if file is None and split is None:
            inputs = typed_inputs(texts, pair, question, option_)
        else:
            inputs = None
            _refuse({"TEXT": texts or None} | fields, "must not be given with --file or --split")
        from albert_keras.finetuning.predict import predict_task

        predictions = predict_task(
            [model, *(also or ())],
            inputs,
            file,
            data_dir,
            split,
            out,
            all_seeds,
            text=text_column,
            pair=pair_column,
            delimiter=delimiter,
            encoding=encoding,
            skip_bad_rows=skip_bad_rows,
        )
        answers = predictions.answers
        if out is None:
            return _answers(predictions.examples, answers)
        line = f"{count_of(len(answers), 'answer')}: {', '.join(predictions.files)}"
        return Output([answer._asdict() for answer in answers], [line])
    from albert_keras.serving.exported_task import read_task
    from albert_keras.serving.layout import version_folder
    from albert_keras.serving.predictor import Predictor

    for_runs = {"--file": file, "--text-column": text_column, "--pair-column": pair_column}
    for_runs |= {"--split": split, "--data-dir": data_dir, "--out": out, "--with": also or None}
    for_runs |= {"--all-seeds": all_seeds or None, "--delimiter": delimiter}
    for_runs |= {"--encoding": encoding, "--skip-bad-rows": skip_bad_rows}
    exported = read_task(version_folder(model))
    if exported is None:
        reason = f"requires a fine-tuned model: `{model}` is a pre-trained export"
        _refuse(fields | for_runs, reason)
        texts = texts or [line for _, line in _read_lines()]
        return _ask_pretrained(Predictor(model), texts, then, 5 if top_k is None else top_k)
    _refuse(for_runs, f"requires a run: `{model}` is an export")
    _refuse(for_pretrained, f"requires an export of a pre-trained model: `{model}` is fine-tuned")
    used = {FIELD_OPTIONS.get(field) for field in exported.task.fields}
    unused = {flag: value for flag, value in fields.items() if flag not in used}
    inputs = " and ".join(f"`{field}`" for field in exported.task.fields)
    _refuse(unused, f"must not be given: the inputs of {exported.task.config.name} are {inputs}")
    inputs = typed_inputs(texts, pair, question, option_)
    predictor = Predictor(model)
    examples = predictor.examples(inputs)
    return _answers(examples, predictor.answers(examples))


def _is_export(model):
    """Returns whether a folder is an export, not a fine-tuning or a run."""
    if not model.is_dir():
        raise InputError(f"The folder `{model}` does not exist. Give an export or a fine-tuning.")
    if any((model / name).is_file() for name in ("run.json", "results.json")):
        return False
    if any(model.glob("seed-*/run.json")):
        return False
    if not (model / "saved_model.pb").is_file() and not versions(model):
        raise InputError(
            f"`{model}` contains no exported model and no fine-tuning. Create one with "
            "`albert-keras export` or `albert-keras finetune`."
        )
    return True


def _refuse(given, reason):
    """Refuses options (dict of name -> value, None if not given) that would have no effect."""
    for name, value in given.items():
        if value is not None:
            raise InputError(f"`{name}` {reason}.")


def _ask_pretrained(predictor, texts, then, top_k):
    if then is not None:
        answers = predictor.sentence_order(texts, [then] * len(texts))
        lines = [
            f"{percent(answer.in_order):>7}  in this order: {answer.first}" for answer in answers
        ]
    else:
        answers = predictor.fill_mask(texts, top_k)
        lines = [line for answer in answers for line in describe(answer)]
    values = [answer._asdict() for answer in answers]
    for value in values:
        if "masks" in value:
            value["masks"] = [[entry._asdict() for entry in mask] for mask in value["masks"]]
    return Output(values, lines)


def _answers(examples, answers):
    lines = [describe_answer(*pair) for pair in zip(examples, answers, strict=True)]
    return Output([answer._asdict() for answer in answers], lines)


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
    return re.sub(r"\s*[\n\r\v\f\x85\u2028\u2029]\s*", " ", line)


def describe(answer):
    """Returns the lines that describe a FilledMask, list of str."""
    lines = [answer.filled_text]
    for candidates in answer.masks:
        shown = "  ".join(f"{piece} {percent(score)}" for piece, score in candidates)
        lines.append(f"    {shown}" if shown else "    (beyond the maximum length of the model)")
    return lines


def _shown(example):
    return example.first if example.second is None else f"{example.first} | {example.second}"


def typed_inputs(texts, pair, question, choices):
    """Returns the inputs of a task, a dict of str for each TEXT or else for each line of stdin.

    Args:
        texts: list of str or None.
        pair, question: str or None. Used for each input that has none of its own.
        choices: list of str or None. Likewise, as "options".

    Raises:
        InputError: As `_read_lines`, or if a line starts with `{` and is not a JSON object.
    """
    flags = {"pair": pair, "question": question, "options": choices or None}
    flags = {name: value for name, value in flags.items() if value is not None}
    name = "context" if {"question", "options"} & flags.keys() else "text"
    if texts:
        return [{name: text} | flags for text in texts]
    return [
        flags | (_parse_object(number, line) if line.startswith("{") else {name: line})
        for number, line in _read_lines()
    ]


def _read_lines():
    """Returns the lines of stdin that are not blank, with their numbers: list of (int, str).

    Raises:
        InputError: If a line is not UTF-8, or all lines are blank.
    """
    if sys.stdin.isatty():
        typer.echo("reading lines from the keyboard until Ctrl-D", err=True)
    lines = []
    for number, data in enumerate(sys.stdin.buffer, start=1):
        try:
            line = data.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            byte = f"0x{data[error.start]:02x}"
            raise InputError(f"Line {number} of stdin is not UTF-8. Received: {byte}.") from None
        if line.strip():
            lines.append((number, line))
    if not lines:
        raise InputError("There is nothing to process. Give TEXT, or lines on stdin.")
    return lines


def _parse_object(number, line):
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"Line {number} of stdin starts with {{ but is not a valid JSON object: {error}. Write "
            'a text that starts with { as {"text": ...}.'
        ) from None
