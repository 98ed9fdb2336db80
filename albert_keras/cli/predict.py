"""`albert-keras predict`."""

import itertools
import re
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Context, Option

from albert_keras.cli.arguments import check_files
from albert_keras.cli.command import Output, command, streamed
from albert_keras.cli.options import DataDir, Encoding, SkipBadRows, refuse
from albert_keras.cli.typed_inputs import arriving_lines, converted_lines, text_batches
from albert_keras.formats.detection import detect
from albert_keras.report import count_of, percent
from albert_keras.tasks.answer_table import check_out, check_request, is_answer_table, with_answers
from data_pipeline.errors import InputError
from data_pipeline.limits import parse_json

_FIELDS = ("pair", "question", "options")
_TABLES = ("file", "out", "overwrite", "text_column", "pair_column", "encoding", "skip_bad_rows")
_OF_ANSWERS = ("file", "split", "data_dir", "out", "overwrite", "bag_of_words")
_SCORED, _PRETRAINED = "a model with `--score`", "a pre-trained model"
_FINETUNING, _EXPORT = "a fine-tuning", "the export of a fine-tuning"
#: The options that each kind of model takes.
_TAKEN = {
    _SCORED: ("mask_rest_of_word",),
    _PRETRAINED: ("then", "top_k"),
    _FINETUNING: (*_FIELDS, *_TABLES, "split", "data_dir", "bag_of_words"),
    _EXPORT: (*_FIELDS, *_TABLES),
}


@command()
def predict(
    context: Context,
    given,
    model: Path,
    inputs: Annotated[list[str] | None, Argument(metavar="TEXT")] = None,
    then: str | None = None,
    top_k: int = 5,
    score: bool = False,
    mask_rest_of_word: bool = False,
    pair: str | None = None,
    question: str | None = None,
    options: Annotated[list[str] | None, Option("--option")] = None,
    file: Path | None = None,
    text_column: Annotated[
        str | None, Option(metavar="COLUMN", show_default="as in training")
    ] = None,
    pair_column: Annotated[
        str | None, Option(metavar="COLUMN", show_default="as in training")
    ] = None,
    split: str | None = None,
    data_dir: DataDir = None,
    out: Path | None = None,
    overwrite: bool = False,
    encoding: Encoding = None,
    skip_bad_rows: SkipBadRows = None,
    bag_of_words: bool = False,
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
    --encoding and --skip-bad-rows change that.

    Args:
      model: Export, one of its versions, or the name of a shipped model; fine-tuning or one of its
        runs; with --score, also a pre-training run or a checkpoint.
      inputs: Text to process, with [MASK] for a pre-trained export; without TEXT, lines of stdin.
      then: Pre-trained export: text that may follow TEXT.
      top_k: Pre-trained export: candidates per [MASK].
      score: Pre-trained export, run or checkpoint: score each TEXT by its pseudo-log-likelihood.
      mask_rest_of_word: With --score, also mask the later tokens of the same word.
      pair: Second text of a pair.
      question: Question about TEXT.
      options: Option to choose from; may be repeated.
      file: File of examples instead of TEXT, in a format of the task.
      text_column: Column of the text in --file.
      pair_column: Column of the second text in --file.
      split: Split of the official files instead of TEXT, such as test.
      out: Table of answers, .csv or .jsonl, or a folder for files such as a submission.
      overwrite: Replace the table of --out if it exists.
      bag_of_words: Let the linear model on counts of words answer that the fine-tuning saved.
    """
    kind, place = (_SCORED, detect(model)) if score else _kind_of(model)
    others = {name for names in _TAKEN.values() for name in names} - set(_TAKEN[kind])
    refuse(context, others, f"must not be given for {kind}. Received: `{model}`.")
    if kind == _SCORED:
        return _score(place, inputs, mask_rest_of_word)
    if kind == _PRETRAINED:
        return _ask_pretrained(place, inputs, then, top_k)
    if file is not None or split is not None:
        refuse(context, _FIELDS, "must not be given with --file or --split.")
    has_inputs = inputs or (file is None and split is None)
    sources = {"inputs": has_inputs, "file": file, "split": split}
    columns = {"text": text_column, "pair": pair_column}
    columns |= {"encoding": encoding, "skip_bad_rows": skip_bad_rows}
    check_request(sources, data_dir, columns)
    check_out(out, file, overwrite)
    check_files(file)
    typed = {"pair": pair, "question": question, "options": options or None}
    fields = {name: value for name, value in typed.items() if value is not None}
    arguments = {name: given[name] for name in _OF_ANSWERS if name in given}
    return _answer_task(place, kind == _EXPORT, inputs or [], fields, columns, **arguments)


def _kind_of(model):
    """Returns what a model is, one of `_TAKEN`, and its Place."""
    wanted = (
        "`predict` takes an export or a fine-tuning. Create one with `albert-keras export` or "
        "`albert-keras finetune`."
    )
    place = detect(model, ("run", "fine-tuning", "export"), wanted)
    if place.kind != "export":
        return (_PRETRAINED if place.run_kind == "pretraining" else _FINETUNING), place
    from albert_keras.serving.predictor import read_task

    return (_PRETRAINED if read_task(place.path) is None else _EXPORT), place


def _ask_pretrained(model, texts, then, top_k):
    """Fills masks, or predicts whether each text is followed by `then`."""
    batches = text_batches(texts)
    from albert_keras.serving.predictor import Predictor
    from albert_keras.tasks.predict import noting_truncation

    predictor = Predictor(model)

    def answers():
        for several in batches:
            if then is None:
                yield from predictor.fill_mask(several, top_k)
            else:
                yield from predictor.sentence_order(several, [then] * len(several))

    return streamed(noting_truncation(answers()), describe_pretrained, as_list=bool(texts))


def _score(model, texts, mask_rest_of_word):
    batches = text_batches(texts)
    from albert_keras.texts.sentence_scores import PseudoLikelihood

    scorer = PseudoLikelihood(model, mask_rest_of_word)
    answers = (score for several in batches for score in scorer.score_texts(several))
    return streamed(answers, _describe_score, as_list=bool(texts))


def _describe_score(score):
    tokens = "  ".join(f"{token.piece} {token.log_probability:.2f}" for token in score.tokens)
    return [
        f"{score.score:9.3f}  {score.score_per_token:8.3f} per token  {score.text}",
        f"    {tokens}",
    ]


def _answer_task(place, is_export, texts, fields, of_file, **arguments):
    """Answers texts, a file or a split; or else lines of stdin, as they arrive.

    Args:
        place: A run, a fine-tuning or an export.
        texts: list of str.
        fields: Other fields of each text, as in `Task.fields`.
        of_file: How to read the file, by the names of settings; None for those of the training.
        **arguments: Further arguments of `predict_task`.
    """
    from albert_keras.serving.predictor import Predictor
    from albert_keras.tasks.finetuned import TrainedTask, open_run
    from albert_keras.tasks.predict import answer_stream, collected, predict_task
    from albert_keras.tasks.word_model import WordModel

    file, out = arguments.get("file"), arguments.get("out")
    if texts or file is not None or "split" in arguments:
        inputs = [typed_fields(text, fields) for text in texts] or None
        model = Predictor(place) if is_export else place
        found = predict_task(model, inputs, **of_file, **arguments)
    else:
        arriving = arriving_lines()
        if is_export:
            model: Any = Predictor(place)
        elif "bag_of_words" in arguments:
            model = WordModel.open(open_run(place))
        else:
            model = TrainedTask.open(place, strategy="auto")
        model.task.log_reading()
        stream = answer_stream(model.answers, _line_inputs(model.task, arriving, fields))
        if out is None:
            values = (one.answer for one in stream)
            return Output(values, (describe_answer(one.example, one.answer) for one in stream))
        found = collected(model.task, stream, out)
    values = found.answers
    if out is not None:
        if is_answer_table(out):
            values = {"answers": len(values), "files": list(found.files)}
        return Output(
            values, [f"{count_of(len(found.answers), 'answer')}: {', '.join(found.files)}"]
        )
    if file is not None:
        values = with_answers(found.rows, found.answers)
    return Output(values, map(describe_answer, found.examples, found.answers))


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


def _line_inputs(task, arriving, fields):
    """Yields lists of inputs, each with its columns and its example, from lines of stdin."""
    from albert_keras.tasks.task import known_fields

    numbers, ids = itertools.count(), set()

    def convert(number, line):
        own = line_fields(number, line, fields)
        try:
            example = task.typed_example(next(numbers), own)
        except InputError as error:
            raise InputError(f"Line {number} of stdin: {error}") from error
        if example.id in ids:
            raise InputError(f"Inputs must have different ids. Received twice: {example.id!r}.")
        ids.add(example.id)
        return known_fields(example), example

    return converted_lines(arriving, convert)


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
    return re.sub(r"\s*[\n\r\v\f\x85\u2028\u2029]\s*", " ", line) + _truncation(answer)


def describe_pretrained(answer):
    """Returns the lines that describe a FilledMask or a SentenceOrder, list of str."""
    if hasattr(answer, "in_order"):
        shown = f"{percent(answer.in_order):>7}  in this order: {answer.first}"
        return [shown + _truncation(answer)]
    lines = [answer.filled_text + _truncation(answer)]
    for candidates in answer.masks:
        shown = "  ".join(f"{piece} {percent(score)}" for piece, score in candidates)
        lines.append(f"    {shown}" if shown else "    (beyond the maximum length of the model)")
    return lines


def _truncation(answer):
    """Returns a note of what a model did not read, "" if it read all."""
    for noun in ("token", "word"):
        if count := getattr(answer, f"dropped_{noun}s", 0):
            return f"  (truncated: {count_of(count, noun)} not read)"
    return ""


def _shown(example):
    return example.first if example.second is None else f"{example.first} | {example.second}"
