"""`albert-keras plan --hours`."""

import math
import textwrap

import typer

from albert_keras.cli.command import Output
from albert_keras.cli.parameters import refuse
from data_pipeline.errors import InputError

#: What the budget chooses: options of `plan` that must not be given with --hours.
CHOSEN = (
    "size",
    "batch",
    "max_seq_length",
    "attention",
    "steps",
    "table",
    "recompute",
)
#: Options that require --hours, as --corpus does.
FOR_HOURS = ("corpus_format", "config_out")
#: Options that have an effect with --table.
FOR_TABLE = ("table", "memory", "device", "precision", "recompute")
#: Options of every command.
_COMMON = ("as_json", "log_format", "verbose", "debug")
_CONFIG_FILE = "plan.yaml"


def check_options(context, has_hours, has_table):
    """Raises InputError if an option has no effect with --hours, without it, or with --table."""
    if has_hours:
        refuse(context, CHOSEN, "must not be given with `--hours`, which determines it.")
        return
    refuse(context, ("corpus",), "requires `--hours`. Without it give --corpus-size.")
    refuse(context, FOR_HOURS, "requires `--hours`.")
    if has_table:
        others = context.params.keys() - {*FOR_TABLE, *_COMMON}
        refuse(context, others, "must not be given with `--table`, which does not depend on it.")


def plan_hours(hours, corpus, corpus_size, corpus_format, config_out, **machine):
    """Plans a run for a number of hours.

    Args:
        hours: float. Time from text to a trained model.
        corpus: list of str, or None. Sources of text.
        corpus_size: float or None. Bytes of text, instead of `corpus`.
        corpus_format: str. Format of the corpus.
        config_out: Path or None. File to write the settings of the run to.
        **machine: `device`, `devices`, `tflops`, `mfu`, `measure`, `precision`, `memory_bytes` and
            `bytes_per_piece`, as in `BudgetRequest`.

    Returns:
        Output.
    """
    from albert_keras.planning.budget import plan_budget
    from albert_keras.planning.budget_text import (
        budget_assumptions,
        budget_commands,
        budget_lines,
        budget_warnings,
        config_text,
    )
    from albert_keras.planning.candidates import BudgetRequest
    from albert_keras.planning.devices import find_device

    if not 0 < hours < math.inf:
        raise InputError(f"`--hours` must be a positive number. Received: {hours:g}.")
    if (corpus_size is None) == (not corpus):
        raise InputError(
            "`--hours` requires either `--corpus`, or `--corpus-size` if the text is not on this "
            f"machine. Received: {'both' if corpus else 'neither'}."
        )
    if config_out is not None:
        from albert_keras.config_files.initial import InitialFile, check_new, write_new

        check_new(config_out, "--config-out")  # before anything takes time
    if corpus:
        from data_pipeline.text.text_files import corpus_bytes

        corpus_size = corpus_bytes(corpus)
    measured, measure = None, machine.pop("measure")
    request = BudgetRequest(seconds=3600 * hours, corpus_bytes=corpus_size, **machine)
    plan, device = plan_budget(request), find_device(request.device)
    if measure or (device.kind == "cpu" and request.tflops is None):
        measured = request.precision or _usual_precision(device)
        request = request.replace(tflops=measure_machine(measured, device.kind == "cpu"))
        plan = plan_budget(request)
    assumptions = budget_assumptions(plan, request, measured)
    warnings, settings = budget_warnings(plan), config_text(plan)
    config_file = str(config_out or _CONFIG_FILE)
    commands = budget_commands(plan, corpus or (), config_file, corpus_format)
    if config_out is not None:
        write_new(config_out, InitialFile(settings, ()), "--config-out")
    values = plan.to_dict() | {"assumptions": assumptions, "warnings": warnings}
    values |= {"commands": commands, "config_file": config_out}

    def lines():
        yield from budget_lines(plan, assumptions)
        for warning in warnings:
            yield ""
            yield from textwrap.wrap(f"Note: {warning}", 100, break_on_hyphens=False)
        if config_out is None:
            yield from ("", f"Settings of the run; --config-out {_CONFIG_FILE} writes them:")
            yield from (f"  {line}".rstrip() for line in settings.splitlines())
        yield from ("", "Commands, all in the same folder")
        yield from (f"  {command}" for command in commands)
        length = plan.stages[-1].max_seq_length
        yield "A score needs held-out text: keep some files apart, build records from them with"
        yield f"--max-seq-length {length}, and give `pretrain` their folder as --eval-data."
        if config_out is not None:
            yield f"settings of the run: {config_file}"

    return Output(values, lines())


def measure_machine(precision, on_cpu):
    """Measures the peak of this machine, or of its CPU, in TFLOP/s, and says so first."""
    from albert_keras.planning.devices import measured_tflops

    typer.echo("loading TensorFlow, measuring the peak", err=True)
    return measured_tflops(precision, on_cpu)


def _usual_precision(device):
    """Returns the precision that `auto` means on this machine, or the usual one of a device."""
    if device.kind != "cpu":
        return device.precision
    from albert_keras.training.distributed.strategy import choose_precision

    return choose_precision(None)
