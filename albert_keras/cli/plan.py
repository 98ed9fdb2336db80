"""`albert-keras plan`."""

from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start


def plan(
    size: Annotated[str, typer.Option(help="Named model.")] = "albert-base",
    memory: Annotated[
        str | None,
        options.option(help="Of a replica, such as 12GB or 12GiB.", default="that of the device"),
    ] = None,
    batch: Annotated[
        int | None, options.option(min=1, help="Global batch size.", default="the recipe's")
    ] = None,
    corpus_size: Annotated[
        str | None, options.option(help="Text, such as 16GB; tells records, epochs and disk.")
    ] = None,
    max_seq_length: Annotated[int, typer.Option(min=8, max=512, help="Pieces per record.")] = 512,
    device: Annotated[
        str,
        typer.Option(
            help="cpu, t4, v100, a100, h100, tpu-v2-8, tpu-v3-8, tpu-v4-8, tpu-v5e-8, tpu-v5p-8 "
            "or tpu-v6e-8."
        ),
    ] = "cpu",
    devices: Annotated[
        int | None, options.option(min=1, help="Replicas.", default="those of the device")
    ] = None,
    tflops: Annotated[
        float | None, options.option(help="Peak of a replica.", default="data sheet of the device")
    ] = None,
    mfu: Annotated[
        float | None, options.option(help="Share of the peak reached, 0 to 1.", default="by device")
    ] = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure the peak on this machine.")
    ] = False,
    precision: Annotated[
        str | None,
        options.option(help="float32, mixed_bfloat16 or mixed_float16.", default="by device"),
    ] = None,
    steps: Annotated[
        int | None, options.option(min=1, help="Optimizer steps.", default="the recipe's text")
    ] = None,
    bytes_per_piece: Annotated[float, typer.Option(help="Of the text; Chinese has 3 to 4.")] = 4.3,
    table: Annotated[
        bool,
        typer.Option("--table", help="Only the largest batch of fine-tuning, for each model."),
    ] = False,
    recompute: Annotated[
        bool, typer.Option("--recompute", help="With --table: blocks computed again.")
    ] = False,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Tell what a pre-training run would take: memory, time, text, disk, recipe, commands.

    \b
    Example:
      albert-keras plan --size albert-base --memory 12GB --batch 4096 --corpus-size 16GB \\
          --device v100
    The largest batch for each model and length:
      albert-keras plan --table --memory 12GB
    """
    start(verbose, debug)
    from albert_keras.planning.devices import find_device
    from albert_keras.planning.sizes import parse_bytes

    memory_bytes = None if memory is None else parse_bytes(memory, "--memory")
    if table:
        from albert_keras.planning.batch_table import batch_table, batch_table_lines

        memory_bytes = memory_bytes or find_device(device).memory_bytes
        result = batch_table(memory_bytes, precision or "float32", recompute)
        show(result, batch_table_lines(result), as_json)
        return
    from albert_keras.planning.plan import PlanRequest, make_plan
    from albert_keras.planning.report import plan_lines

    if measure:
        tflops = _measured_tflops(precision or find_device(device).precision)
    request = PlanRequest(
        size=size,
        memory_bytes=memory_bytes,
        batch_size=batch,
        corpus_bytes=None if corpus_size is None else parse_bytes(corpus_size, "--corpus-size"),
        max_seq_length=max_seq_length,
        device=device,
        devices=devices,
        tflops=tflops,
        mfu=mfu,
        precision=precision,
        steps=steps,
        bytes_per_piece=bytes_per_piece,
    )
    made = make_plan(request, is_measured=measure)
    show(made.to_dict(), plan_lines(made), as_json)


def _measured_tflops(precision):
    from albert_keras.training.cost.peak import measure_peak
    from data_pipeline.errors import InputError

    typer.echo("loading TensorFlow, measuring the peak", err=True)
    rate = measure_peak(precision, seconds=2)
    if rate is None:
        raise InputError("`--measure` runs nothing on a TPU: give --tflops instead.")
    return rate / 1e12
