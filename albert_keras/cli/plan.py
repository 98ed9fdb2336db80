"""`albert-keras plan`."""

import textwrap
from pathlib import Path

import typer

from albert_keras.cli.command import Output, command
from albert_keras.cli.output import plain
from albert_keras.cli.parameters import refuse
from data_pipeline.errors import InputError

#: Options that describe a named model, and the text of a vocabulary that is trained.
_OF_SIZE = ("batch", "max_seq_length", "attention")
_OF_TEXT = ("corpus", "corpus_size", "corpus_format", "tokenizer")


@command()
def plan(
    context: typer.Context,
    corpus: list[str] | None = None,
    corpus_size: str | None = None,
    data: Path | None = None,
    hours: float | None = None,
    size: str | None = None,
    out: Path = Path("plan.yaml"),
    corpus_format: str = "auto",
    tokenizer: Path | None = None,
    batch: int | None = None,
    max_seq_length: int = 512,
    attention: str = "dense",
    device: str = "cpu",
    devices: int | None = None,
    memory: str | None = None,
    tflops: float | None = None,
    precision: str | None = None,
):
    """Plan what to run: model, settings, time, memory and commands.

    The settings are written to a file, which the last of the printed commands uses.

    Examples, first what a model can learn from a folder of text in one night:
      albert-keras plan --corpus books/ --hours 8
    What a named model needs:
      albert-keras plan --size albert-base --corpus-size 16GB --device v100 --memory 12GB

    Options:
      corpus
      corpus_size: Size of the text, such as 16GB, if it is not on this machine.
      data: Folder of records to train on, instead of text.
      hours (8, or as long as the recipe of --size): Hours from text to a trained model.
      size (chosen for text, machine and hours): Named model.
      out FILE: File of settings to write.
      corpus_format
      tokenizer (tokenizer/ if it exists): Tokenizer to use, as for `data build`; without one, a
        vocabulary is planned.
      batch {1..} (by recipe): Global batch size.
      max_seq_length {8..8192}: Tokens per record.
      attention KIND: Attention: dense, or block-sparse for long records.
      device: Device: cpu (this machine's), t4, v100, a100, h100, tpu-v2-8, tpu-v3-8, tpu-v4-8,
        tpu-v5e-8, tpu-v5p-8 or tpu-v6e-8.
      devices {1..} (all replicas of the device): Number of replicas.
      memory (of the device): Memory of a replica, such as 12GB or 12GiB.
      tflops (measured on a CPU, otherwise from data sheets): Peak TFLOP/s of a replica.
      precision (by device): Precision: float32, mixed_bfloat16 or mixed_float16.
    """
    from albert_keras.machine.candidates import PlanRequest
    from albert_keras.machine.devices import parse_bytes
    from albert_keras.machine.plan import make_plan
    from albert_keras.machine.plan_text import (
        plan_commands,
        plan_lines,
        plan_warnings,
        write_config,
    )

    if corpus and corpus_size:
        raise InputError("Give `--corpus` or `--corpus-size`. Received: both.")
    if size is None:
        refuse(context, _OF_SIZE, "requires `--size`: without it the plan determines it.")
    if data is not None:
        refuse(context, _OF_TEXT, "must not be given with `--data`: records have their tokenizer.")
    elif tokenizer is None and Path("tokenizer").is_dir():
        tokenizer = Path("tokenizer")
    request = PlanRequest(
        corpus=tuple(corpus or ()),
        corpus_format=corpus_format,
        corpus_bytes=None if corpus_size is None else parse_bytes(corpus_size, "--corpus-size"),
        tokenizer=tokenizer and str(tokenizer),
        data=data and str(data),
        hours=hours,
        size=size,
        batch_size=batch,
        max_seq_length=max_seq_length,
        attention=attention,
        device=device,
        devices=devices,
        tflops=tflops,
        memory_bytes=None if memory is None else parse_bytes(memory, "--memory"),
        precision=precision,
    )
    made = make_plan(request)
    write_config(made, out)
    commands, warnings = plan_commands(made, str(out)), plan_warnings(made)
    values = plain(made) | {"commands": commands, "warnings": warnings, "config_file": out}

    def lines():
        yield from plan_lines(made)
        for warning in warnings:
            yield from ("", *textwrap.wrap(f"Note: {warning}", 100, break_on_hyphens=False))
        yield from ("", f"Commands, all in this folder; {out} has the settings:")
        yield from (f"  {command}" for command in commands)
        length = made.stages[-1].max_seq_length
        yield "A score needs held-out text: keep some files apart, build records from them with"
        yield f"--max-seq-length {length}, and give `pretrain` their folder as --eval-data."

    return Output(values, lines())
