"""python -m tests.tpu_check: the check of `make check-tpu`.

Exit code 0: everything compiles, whether it fits or not. 1: there is a fault. 2: an option is not
valid.
"""

import argparse
import itertools
import logging
import sys
from pathlib import Path

from albert_keras.config import AlbertConfig
from albert_keras.tasks.kinds import KINDS
from data_pipeline.errors import InputError
from data_pipeline.files import whole_file
from tests.tpu_check.check import TOPOLOGIES, check, compiler_versions
from tests.tpu_check.program import program_of
from tests.tpu_check.report import fault_lines, table

_PRETRAINING = "pretraining"


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
    programs = [
        {
            "model": {"size": model},
            "batch": batch,
            "sequence_length": length,
            "precision": precision,
            "accumulation": accumulation,
            "recompute": options.recompute,
            **({} if kind == _PRETRAINING else {"kind": kind}),
            **({"predicts": True} if options.predict else {}),
        }
        for kind, model, length, batch, precision, accumulation in itertools.product(
            options.kind,
            options.model,
            options.seq,
            options.batch,
            options.precision,
            options.accumulation,
        )
    ]
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
    add("--seq", nargs="+", type=int, default=[512], help="tokens per sequence")
    add("--topology", nargs="+", default=list(TOPOLOGIES), choices=list(TOPOLOGIES))
    add("--precision", nargs="+", default=["mixed_bfloat16"], choices=["mixed_bfloat16", "float32"])
    add("--accumulation", nargs="+", type=int, default=[1], help="parts of a batch")
    add("--recompute", action="store_true", help="recompute activations in the backward pass")
    add("--out", type=Path, default=Path("build/tpu-check"), help="folder for HLO and results")
    add("--compiler", type=Path, default=Path(".venv-tpu/bin/python"), help="Python that compiles")
    add("--no-compile", action="store_true", help="only trace and lower, which takes seconds")
    return parser


if __name__ == "__main__":
    sys.exit(main())
