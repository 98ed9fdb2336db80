"""`albert-keras plan`."""

from pathlib import Path

import typer

from albert_keras.cli.command import Output, command
from albert_keras.cli.parameters import is_given
from albert_keras.cli.plan_hours import check_options, measure_machine, plan_hours
from data_pipeline.errors import InputError


@command()
def plan(
    context: typer.Context,
    size: str = "albert-base",
    memory: str | None = None,
    batch: int | None = None,
    corpus_size: str | None = None,
    hours: float | None = None,
    corpus: list[str] | None = None,
    corpus_format: str = "auto",
    config_out: Path | None = None,
    max_seq_length: int = 512,
    attention: str = "dense",
    device: str = "cpu",
    devices: int | None = None,
    tflops: float | None = None,
    mfu: float | None = None,
    measure: bool = False,
    precision: str | None = None,
    steps: int | None = None,
    bytes_per_piece: float = 4.3,
    table: bool = False,
    recompute: bool = False,
):
    """Plan memory, time, text and disk of a pre-training run.

    Example:
      albert-keras plan --size albert-base --memory 12GB --batch 4096 --corpus-size 16GB \\
          --device v100
    The largest batch for each model and length:
      albert-keras plan --table --memory 12GB
    What a model can learn from a folder of text in one night:
      albert-keras plan --corpus books/ --hours 8 --config-out plan.yaml

    Options:
      size: Named model.
      memory (memory of the device): Memory of a replica, such as 12GB or 12GiB.
      batch {1..} (batch size of the recipe): Global batch size.
      corpus_size: Size of the corpus, such as 16GB, to plan records, epochs and disk.
      hours: Hours from text to a trained model. Vocabulary, model and stages are then chosen for
        the text, and the loss is estimated.
      corpus PATH: With --hours, text file, folder or 'glob' to train on; may be repeated.
      corpus_format
      config_out FILE: With --hours, file to write the settings of the run to.
      max_seq_length {8..8192}: Tokens per record.
      attention KIND: Attention: dense, or block-sparse for long records.
      device: Device: cpu, t4, v100, a100, h100, tpu-v2-8, tpu-v3-8, tpu-v4-8, tpu-v5e-8, tpu-v5p-8
        or tpu-v6e-8.
      devices {1..} (all replicas of the device): Number of replicas.
      tflops (from the data sheet): Peak TFLOP/s of a replica.
      mfu (by device): Model FLOPs utilization, 0 to 1.
      measure: Measure the peak of this machine. With --hours this is the default on a CPU.
      precision (by device): Precision: float32, mixed_bfloat16 or mixed_float16.
      steps {1..} (from the recipe): Number of optimizer steps.
      bytes_per_piece: Bytes of text per token; 3 to 4 for Chinese.
      table: Print the largest fine-tuning batch of each model, or with --recompute of models whose
        blocks are recomputed.
      ~recompute: With --table: assume recomputed blocks.
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
