"""`albert-keras plan`."""

import textwrap
from pathlib import Path
from typing import Annotated

from typer import Context, Option

from albert_keras.cli.command import Output, command
from albert_keras.cli.options import Corpus, CorpusFormat, refuse
from albert_keras.report import parse_bytes
from data_pipeline.errors import InputError

#: Options that describe a text.
_OF_TEXT = ("corpus", "corpus_size", "corpus_format", "language", "tokenizer")


@command()
def plan(
    context: Context,
    corpus: Corpus = None,
    corpus_size: str | None = None,
    data: Path | None = None,
    hours: float = 8,
    out: Annotated[Path, Option(metavar="FILE")] = Path("plan.yaml"),
    corpus_format: CorpusFormat = "auto",
    language: Annotated[str | None, Option(show_default="detected")] = None,
    tokenizer: Annotated[Path | None, Option(show_default="tokenizer/ if it exists")] = None,
    tflops: Annotated[float | None, Option(show_default="measured")] = None,
):
    """Plan what to run on this machine: model, settings, time, memory and commands.

    The settings are written to a file, which the last of the printed commands uses.

    Example, what a model can learn from a folder of text in one night:
      albert-keras plan --corpus books/ --hours 8
    With a GPU the plan is for the GPU, on which an update of each model is timed. What a model of
    your choice needs is measured by a dry run of `albert-keras pretrain`.

    Args:
      corpus_size: Size of the text, such as 16GB, if it is not on this machine.
      data: Folder of records to train on, instead of text.
      hours: Hours from text to a trained model.
      out: File of settings to write.
      language: Language code of the text.
      tokenizer: Tokenizer to use, as for `data build`; without one, a vocabulary is planned.
      tflops: Peak TFLOP/s of a CPU to plan for, instead of this machine.
    """
    from albert_keras.machine.plan import PlanRequest, make_plan
    from albert_keras.machine.plan_text import (
        HELD_OUT,
        plan_commands,
        plan_lines,
        plan_warnings,
        write_config,
    )

    if corpus and corpus_size:
        raise InputError("Give `--corpus` or `--corpus-size`. Received: both.")
    if data is not None:
        refuse(context, _OF_TEXT, "must not be given with `--data`: records have their tokenizer.")
    elif tokenizer is None and Path("tokenizer").is_dir():
        tokenizer = Path("tokenizer")
    request = PlanRequest(
        corpus=tuple(corpus or ()),
        corpus_format=corpus_format,
        language=language,
        corpus_bytes=None if corpus_size is None else parse_bytes(corpus_size, "--corpus-size"),
        tokenizer=tokenizer and str(tokenizer),
        data=data and str(data),
        hours=hours,
        tflops=tflops,
    )
    made = make_plan(request)
    write_config(made, out)
    commands, warnings = plan_commands(made, str(out)), plan_warnings(made)
    values = made._asdict() | {"commands": commands, "warnings": warnings, "config_file": out}

    def lines():
        yield from plan_lines(made)
        for warning in warnings:
            yield from ("", *textwrap.wrap(f"Note: {warning}", 100, break_on_hyphens=False))
        yield from ("", f"Commands, all in this folder; {out} has the settings:")
        yield from (f"  {command}" for command in commands)
        if any(HELD_OUT in command for command in commands):
            yield f"{HELD_OUT} are files apart from the corpus, on which the model is scored."

    return Output(values, lines())
