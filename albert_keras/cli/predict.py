"""`albert-keras predict`."""

from pathlib import Path

import typer

from albert_keras.cli.answer_lines import describe_pretrained
from albert_keras.cli.command import command, streamed
from albert_keras.cli.minimal_pairs import score_texts
from albert_keras.cli.parameters import refuse
from albert_keras.cli.typed_inputs import text_batches
from albert_keras.formats.detection import detect, kind_of_run
from albert_keras.tasks.answer_table import check_out, check_request
from data_pipeline.errors import InputError
from data_pipeline.text import storage

_FIELDS = ("pair", "question", "option")
_OF_A_TABLE = ("encoding", "skip_bad_rows")
_TABLES = ("file", "out", "overwrite", "text_column", "pair_column", *_OF_A_TABLE)
_SCORED, _PRETRAINED = "a model with `--score`", "a pre-trained model"
_FINETUNING, _EXPORT = "a fine-tuning", "the export of a fine-tuning"
#: The options that each kind of model takes.
_TAKEN = {
    _SCORED: ("mask_rest_of_word",),
    _PRETRAINED: ("then", "top_k"),
    _FINETUNING: (*_FIELDS, *_TABLES, "split", "data_dir"),
    _EXPORT: (*_FIELDS, *_TABLES),
}


@command("albert_keras.tasks.predict:predict_task")
def predict(
    context: typer.Context,
    call,
    model: Path,
    texts: list[str] | None = None,
    then: str | None = None,
    top_k: int = 5,
    score: bool = False,
    mask_rest_of_word: bool = False,
    pair: str | None = None,
    question: str | None = None,
    option: list[str] | None = None,
    text_column: str | None = None,
    pair_column: str | None = None,
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
      ~encoding ~skip_bad_rows
    """
    kind = _SCORED if score else _kind_of(model)
    others = {name for names in _TAKEN.values() for name in names} - set(_TAKEN[kind])
    refuse(context, others, f"must not be given for {kind}. Received: `{model}`.")
    if kind == _SCORED:
        return score_texts(model, texts, mask_rest_of_word)
    if kind == _PRETRAINED:
        return _ask_pretrained(model, texts, then, top_k)
    arguments = call.given
    file, split = arguments.get("file"), arguments.get("split")
    if file is not None or split is not None:
        if texts:
            raise InputError("`TEXT` must not be given with --file or --split.")
        refuse(context, _FIELDS, "must not be given with --file or --split.")
    sources = {"inputs": file is None and split is None, "file": file, "split": split}
    columns = {"text": text_column, "pair": pair_column}
    columns |= {name: arguments.pop(name, None) for name in _OF_A_TABLE}
    check_request(sources, arguments.get("data_dir"), columns)
    check_out(arguments.get("out"), file, "overwrite" in arguments)
    if file is not None and not file.is_dir():
        storage.open_to_read(file).close()
    from albert_keras.cli.task_answers import answer_task

    typed = {"pair": pair, "question": question, "options": option or None}
    fields = {name: value for name, value in typed.items() if value is not None}
    return answer_task(model, kind == _EXPORT, texts or [], fields, columns, **arguments)


def _kind_of(model):
    """Returns what a model is, one of `_TAKEN`."""
    if kind_of_run(model) == "pretraining":
        return _PRETRAINED
    wanted = (
        "`predict` takes an export or a fine-tuning. Create one with `albert-keras export` or "
        "`albert-keras finetune`."
    )
    place = detect(model, ("run", "fine-tuning", "export"), wanted)
    if place.kind != "export":
        return _FINETUNING
    from albert_keras.serving.predictor import read_task

    return _PRETRAINED if read_task(place.path) is None else _EXPORT


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
