"""python -m tests.tpu_check: the check of `make check-tpu`.

Exit code 0: everything compiles, whether it fits or not. 1: there is a fault. 2: an option is not
valid.
"""

import argparse
import itertools
import logging
import sys
from collections.abc import Iterable
from pathlib import Path

from albert_keras.config import AlbertConfig
from albert_keras.report import markdown_table
from albert_keras.tasks.kinds import KINDS
from data_pipeline.errors import InputError
from data_pipeline.files import whole_file
from tests.tpu_check.check import TOPOLOGIES, Checked, check, compiler_versions
from tests.tpu_check.program import program_of

_PRETRAINING = "pretraining"
_HEADINGS = (
    "model",
    "S",
    "batch per replica",
    "global batch",
    "TPU",
    "fits",
    "GiB per replica",
    "TFLOP per step and replica",
    "all-reduces",
    "products bfloat16 / float32",
    "compiled in",
)


def main(arguments: list[str] | None = None) -> int:
    """Checks the requested programs and prints a table; returns the exit code."""
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    try:
        return _check(options)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


def _check(options):
    if options.predict and _PRETRAINING in options.kind:
        raise InputError(f"`--predict` is for a `--kind` of task. Received: {_PRETRAINING}.")
    names = ("kind", "model", "sequence_length", "batch", "accumulation")
    shared = {"recompute": options.recompute} | ({"predicts": True} if options.predict else {})
    programs = []
    for values in itertools.product(*(getattr(options, name) for name in names)):
        fields = shared | dict(zip(names, values, strict=True))
        if fields["kind"] == _PRETRAINING:
            del fields["kind"]
        programs.append(fields | {"model": {"size": fields["model"]}})
    for fields in programs:
        program_of(fields).config()  # refuses invalid settings before any work
    compiler = None if options.no_compile else options.compiler
    versions = compiler_versions(compiler) if compiler else {}
    results = []
    for result in check(programs, options.topology, options.out, compiler):
        results.append(result)
        logging.info(table([result])[-1])
    lines = table(results)
    if versions:
        lines += ["", "with " + ", ".join(f"{name} {text}" for name, text in versions.items())]
    with whole_file(options.out / "table.md") as temporary:
        temporary.write_text("\n".join([*lines, ""]), encoding="utf-8")
    print("\n".join(lines))
    faults = list(fault_lines(results))
    for line in faults:
        print(f"fault: {line}", file=sys.stderr)
    return 1 if faults else 0


def _parser():
    parser = argparse.ArgumentParser(
        prog="python -m tests.tpu_check",
        description="Checks training steps for TPUs on a machine without one; see docs/tpu.md. "
        "All combinations of the options are checked.",
    )
    add = parser.add_argument
    add("--model", nargs="+", default=["albert-base"], choices=AlbertConfig.names(), metavar="NAME")
    add("--kind", nargs="+", default=[_PRETRAINING], choices=[_PRETRAINING, *KINDS])
    add("--predict", action="store_true", help="check the prediction of a kind, not its training")
    add("--batch", nargs="+", type=int, default=[32], help="rows per replica and step")
    length = {"dest": "sequence_length", "help": "tokens per sequence"}
    add("--seq", nargs="+", type=int, default=[512], **length)
    add("--topology", nargs="+", default=list(TOPOLOGIES), choices=list(TOPOLOGIES))
    add("--accumulation", nargs="+", type=int, default=[1], help="parts of a batch")
    add("--recompute", action="store_true", help="recompute activations in the backward pass")
    add("--out", type=Path, default=Path("build/tpu-check"), help="folder for HLO and results")
    add("--compiler", type=Path, default=Path(".venv-tpu/bin/python"), help="Python that compiles")
    add("--no-compile", action="store_true", help="only trace and lower, which takes seconds")
    return parser


def table(results: Iterable[Checked]) -> list[str]:
    """Returns the lines of an aligned Markdown table."""
    return markdown_table(_HEADINGS, map(_cells, results))


def fault_lines(results):
    """Yields one line for each different fault, and where it was first found."""
    seen = set()
    for result in results:
        for fault in result.faults:
            if fault not in seen:
                seen.add(fault)
                yield f"{_name(result.program)}, {result.topology}: {fault}"


def _cells(result):
    program, compiled = result.program, result.compiled or {}
    memory = TOPOLOGIES[result.topology].memory_gib
    outcome = compiled.get("outcome", "not compiled")
    cells = [
        _name(program),
        str(program.sequence_length),
        str(program.batch),
        str(program.batch * program.replicas),
        result.topology,
    ]
    if result.faults:
        return [*cells, "FAULT", *[""] * 5]
    if outcome == "out of memory":
        return [*cells, "no", f"more than {memory}", *[""] * 4]
    if outcome == "not compiled":
        return [*cells, outcome, "", "", f"({result.traced['all_reduces']})", "", ""]
    products = compiled["products"]
    return [
        *cells,
        "yes",
        f"{compiled['gib']:.2f} of {memory}",
        f"{compiled['tflop']:#.3g}",
        f"{compiled['all_reduces']} of {result.traced['all_reduces']}",
        f"{products.get('bf16', 0)} / {products.get('f32', 0)}",
        f"{compiled['seconds']:.0f} s",
    ]


def _name(program):
    changes = [*program.about]
    if program.accumulation > 1:
        changes.append(f"in {program.accumulation} parts")
    if program.recompute:
        changes.append("recomputed")
    return ", ".join([program.model["size"], *changes])


if __name__ == "__main__":
    sys.exit(main())
