"""`albert-keras predict`."""

import re
from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start
from albert_keras.cli.typed_inputs import read_lines, typed_inputs
from albert_keras.serving.layout import versions
from albert_keras.tasks.kinds import FIELD_OPTIONS
from data_pipeline.errors import InputError


def predict(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Exported model, or one version; or folder of a fine-tuning or one of its runs.",
            show_default=False,
        ),
    ],
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT",
            help="What to answer; with [MASK] in it for an export of a pre-trained model; none: "
            "lines of stdin.",
            show_default=False,
        ),
    ] = None,
    then: Annotated[
        str | None,
        options.option(
            help="Pre-trained export: ask whether this comes after TEXT.", metavar="TEXT"
        ),
    ] = None,
    top_k: Annotated[
        int | None,
        options.option(help="Pre-trained export: candidates per [MASK].", default="5"),
    ] = None,
    pair: Annotated[
        str | None, options.option(help="Second text of a pair.", metavar="TEXT")
    ] = None,
    question: Annotated[
        str | None, options.option(help="Question about TEXT, the passage.", metavar="TEXT")
    ] = None,
    option: Annotated[
        list[str] | None, options.option(help="Option to choose from; repeated.", metavar="TEXT")
    ] = None,
    file: Annotated[
        Path | None, options.option(help="File of examples instead of TEXT, as those of the task.")
    ] = None,
    text_column: Annotated[
        str | None,
        options.option(
            help="Column of the text in --file.", metavar="COLUMN", default="as in training"
        ),
    ] = None,
    pair_column: Annotated[
        str | None, options.option(help="Column of the second text.", metavar="COLUMN")
    ] = None,
    split: Annotated[
        str | None,
        options.option(help="Split of the official files instead of TEXT, such as test."),
    ] = None,
    data_dir: Annotated[
        Path | None, options.option(help="Folder of the official files.", default="as in training")
    ] = None,
    out: Annotated[
        Path | None, options.option(help="Folder for the files of the task, such as a submission.")
    ] = None,
    also: Annotated[
        list[Path] | None,
        options.option(
            "--with", metavar="PATH", help="Average with this fine-tuning; may be repeated."
        ),
    ] = None,
    all_seeds: Annotated[
        bool, options.option("--all-seeds", help="Average all seeds, not only the best one.")
    ] = False,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Answer new text with a fine-tuned model or its export; or fill masks with a pre-trained one.

    \b
    Examples:
      albert-keras predict runs/sst-2 "a gripping, funny film"
      albert-keras predict runs/squad "Ada lived in Paris." --question "Where did Ada live?"
      albert-keras predict runs/sst-2 --split test --out submission/
      albert-keras predict saved_models/sst-2 "a gripping, funny film"
      albert-keras predict saved_models/books "The capital of France is [MASK]."
      albert-keras predict saved_models/books "He opened the door." --then "He went in."

    A line of stdin may be a JSON object: {"text": ..., "pair": ...}, {"context": ...,
    "question": ..., "options": [...]} or {"words": [...]}, with an "id" or without. What it does
    not say is taken from --pair, --question and --option.
    """
    start(verbose, debug)
    asked = {"--pair": pair, "--question": question, "--option": option or None}
    if _is_export(model):
        from albert_keras.serving.exported_task import read_task
        from albert_keras.serving.layout import version_folder

        others = {"--file": file, "--text-column": text_column, "--pair-column": pair_column}
        others |= {"--split": split, "--data-dir": data_dir, "--out": out, "--with": also or None}
        others |= {"--all-seeds": all_seeds or None}
        exported = read_task(version_folder(model))
        if exported is None:
            _refuse(asked | others, f"is for fine-tuned models: `{model}` is an export")
            texts = texts or [line for _, line in read_lines()]
            _ask_export(model, texts, then, 5 if top_k is None else top_k, as_json)
            return
        _refuse(others, f"is for runs: `{model}` is an export")
        _refuse(
            {"--then": then, "--top-k": top_k},
            f"is for exports of pre-trained models: `{model}` is fine-tuned",
        )
        fields = exported.fields
        taken = {flag: field for field, flag in FIELD_OPTIONS.items()}
        _refuse(
            {name: value for name, value in asked.items() if taken[name] not in fields},
            f"should be left out: {exported.task.config.name} is asked with "
            + " and ".join(f"`{field}`" for field in fields),
        )
        _ask_task_export(model, typed_inputs(texts, pair, question, option), as_json)
        return
    _refuse({"--then": then, "--top-k": top_k}, f"is for exports: `{model}` is fine-tuned")
    if file is None and split is None:
        inputs = typed_inputs(texts, pair, question, option)
    else:
        inputs = None
        _refuse({"TEXT": texts or None} | asked, "should be left out beside --file and --split")
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
    )
    lines = None
    if out is not None:
        lines = [f"{len(predictions.answers):,} answers: {', '.join(predictions.files)}"]
    _show_answers(predictions.examples, predictions.answers, as_json, lines)


def describe_answer(example, answer):
    """Words an answer to an example, str in one line."""
    if hasattr(answer, "tags"):
        pairs = zip(answer.words, answer.tags, strict=True)
        line = " ".join(word if tag == "O" else f"{word}/{tag}" for word, tag in pairs)
    elif hasattr(answer, "score"):
        line = f"{answer.score:7.3f}  {_shown(example)}"
    elif hasattr(answer, "label"):
        line = f"{answer.label}  {answer.probability:.1%}  {_shown(example)}"
    else:
        text = answer.option if hasattr(answer, "option") else answer.text or "(no answer)"
        line = f"{text}  {answer.probability:.1%}  {example.question}"
    return re.sub(r"\s*[\n\r\v\f\x85\u2028\u2029]\s*", " ", line)


def describe(answer):
    """Words a FilledMask, list of str."""
    lines = [answer.filled_text]
    for candidates in answer.masks:
        shown = "  ".join(f"{piece} {score:.1%}" for piece, score in candidates)
        lines.append(f"    {shown}" if shown else "    (beyond the length the model takes)")
    return lines


def _shown(example):
    return example.first if example.second is None else f"{example.first} | {example.second}"


def _is_export(model):
    """Tells an export from a fine-tuning or a run."""
    if not model.is_dir():
        raise InputError(f"There is no folder `{model}`. It should be an export or a fine-tuning.")
    if any((model / name).is_file() for name in ("run.json", "results.json")):
        return False
    if any(model.glob("seed-*/run.json")):
        return False
    if not (model / "saved_model.pb").is_file() and not versions(model):
        raise InputError(
            f"`{model}` holds no exported model and no fine-tuning. Make one with `albert-keras "
            "export` or `albert-keras finetune`."
        )
    return True


def _refuse(options, why):
    """Refuses options (dict of name -> value, None if not given) that would change nothing."""
    for name, value in options.items():
        if value is not None:
            raise InputError(f"`{name}` {why}.")


def _ask_export(model, texts, then, top_k, as_json):
    from albert_keras.serving.predictor import Predictor

    predictor = Predictor(model)
    if then is not None:
        answers = predictor.sentence_order(texts, [then] * len(texts))
        lines = [f"{answer.in_order:6.1%}  in this order: {answer.first}" for answer in answers]
    else:
        answers = predictor.fill_mask(texts, top_k)
        lines = [line for answer in answers for line in describe(answer)]
    show([_plain(answer) for answer in answers], lines, as_json)


def _ask_task_export(model, inputs, as_json):
    from albert_keras.serving.predictor import Predictor

    predictor = Predictor(model)
    examples = predictor.examples(inputs)
    _show_answers(examples, predictor.answers(examples), as_json)


def _show_answers(examples, answers, as_json, lines=None):
    """Shows answers of a task as JSON, or `lines`, by default one for each answer."""
    if lines is None:
        lines = [describe_answer(*pair) for pair in zip(examples, answers, strict=True)]
    show([answer._asdict() for answer in answers], lines, as_json)


def _plain(answer):
    values = answer._asdict()
    if "masks" in values:
        values["masks"] = [[entry._asdict() for entry in mask] for mask in values["masks"]]
    return values
