"""`albert-keras plan`."""

from pathlib import Path

import typer

from albert_keras.cli import options
from albert_keras.cli.command import Output, command
from albert_keras.cli.options import is_given, option
from albert_keras.cli.plan_hours import check_options, measure_machine, plan_hours
from data_pipeline.config import LONGEST_RECORD
from data_pipeline.errors import InputError


@command()
def plan(
    context: typer.Context,
    size: str = option("albert-base", "Named model."),
    memory: str | None = option(
        None, "Memory of a replica, such as 12GB or 12GiB.", shown="memory of the device"
    ),
    batch: int | None = option(None, "Global batch size.", min=1, shown="batch size of the recipe"),
    corpus_size: str | None = option(
        None, "Size of the corpus, such as 16GB, to plan records, epochs and disk."
    ),
    hours: float | None = option(
        None,
        "Hours from text to a trained model. Vocabulary, model and stages are then chosen for the "
        "text, and the loss is estimated.",
        shown=False,
    ),
    corpus: list[str] | None = option(
        None,
        "With --hours, text file, folder or 'glob' to train on; may be repeated.",
        metavar="PATH",
    ),
    corpus_format: str = options.CORPUS_FORMAT,
    config_out: Path | None = option(
        None, "With --hours, file to write the settings of the run to.", metavar="FILE"
    ),
    max_seq_length: int = option(512, "Tokens per record.", min=8, max=LONGEST_RECORD),
    attention: str = option(
        "dense", "Attention: dense, or block-sparse for long records.", metavar="KIND"
    ),
    device: str = option(
        "cpu",
        "Device: cpu, t4, v100, a100, h100, tpu-v2-8, tpu-v3-8, tpu-v4-8, tpu-v5e-8, tpu-v5p-8 or "
        "tpu-v6e-8.",
    ),
    devices: int | None = option(
        None, "Number of replicas.", min=1, shown="all replicas of the device"
    ),
    tflops: float | None = option(None, "Peak TFLOP/s of a replica.", shown="from the data sheet"),
    mfu: float | None = option(None, "Model FLOPs utilization, 0 to 1.", shown="by device"),
    measure: bool = option(
        False,
        "Measure the peak of this machine. With --hours this is the default on a CPU.",
        "--measure",
    ),
    precision: str | None = option(None, options.PRECISIONS, shown="by device"),
    steps: int | None = option(None, "Number of optimizer steps.", min=1, shown="from the recipe"),
    bytes_per_piece: float = option(4.3, "Bytes of text per token; 3 to 4 for Chinese."),
    table: bool = option(False, "Print the largest fine-tuning batch of each model.", "--table"),
    recompute: bool = option(False, "With --table: assume recomputed blocks.", "--recompute"),
):
    """Plan memory, time, text and disk of a pre-training run.

    \b
    Example:
      albert-keras plan --size albert-base --memory 12GB --batch 4096 --corpus-size 16GB \\
          --device v100
    The largest batch for each model and length:
      albert-keras plan --table --memory 12GB
    What a model can learn from a folder of text in one night:
      albert-keras plan --corpus books/ --hours 8 --config-out plan.yaml
    """
    from albert_keras.planning.devices import find_device
    from albert_keras.planning.sizes import parse_bytes

    check_options(context, hours is not None, table)
    if recompute and not table:
        raise InputError("`--recompute` requires `--table`, which is not given.")
    if measure and tflops is not None:
        raise InputError("Only one of `--measure` and `--tflops` may be given. Received: both.")
    memory_bytes = None if memory is None else parse_bytes(memory, "--memory")
    corpus_bytes = None if corpus_size is None else parse_bytes(corpus_size, "--corpus-size")
    if hours is not None:
        return plan_hours(
            hours,
            corpus,
            corpus_bytes,
            corpus_format,
            config_out,
            device=device,
            devices=devices,
            tflops=tflops,
            mfu=mfu,
            measure=measure,
            precision=precision,
            memory_bytes=memory_bytes,
            bytes_per_piece=bytes_per_piece if is_given(context, "bytes_per_piece") else None,
        )
    if table:
        from albert_keras.planning.batch_fit import batch_table, batch_table_lines

        memory_bytes = memory_bytes or find_device(device).memory_bytes
        result = batch_table(memory_bytes, precision or "float32", recompute)
        return Output(result, batch_table_lines(result))
    from albert_keras.planning.plan import PlanRequest, make_plan, plan_lines

    if measure:
        planned = find_device(device)
        tflops = measure_machine(precision or planned.precision, planned.kind == "cpu")
    request = PlanRequest(
        size=size,
        memory_bytes=memory_bytes,
        batch_size=batch,
        corpus_bytes=corpus_bytes,
        max_seq_length=max_seq_length,
        attention=attention,
        device=device,
        devices=devices,
        tflops=tflops,
        mfu=mfu,
        precision=precision,
        steps=steps,
        bytes_per_piece=bytes_per_piece,
    )
    made = make_plan(request, is_measured=measure)
    return Output(made.to_dict(), plan_lines(made))
