"""The results as a table for the screen and for the documentation."""

from collections.abc import Iterable

from albert_keras.report import markdown_table
from tests.tpu_check.check import TOPOLOGIES, Checked

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
    if program.precision != "mixed_bfloat16":
        changes.append(program.precision)
    if program.accumulation > 1:
        changes.append(f"in {program.accumulation} parts")
    if program.recompute:
        changes.append("recomputed")
    return ", ".join([program.model["size"], *changes])
