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
    outcome = compiled.get("outcome")
    fits = {"compiled": "yes", "out of memory": "no"}.get(outcome, "not compiled")
    return (
        _name(program),
        str(program.sequence_length),
        str(program.batch),
        str(program.batch * program.replicas),
        result.topology,
        "FAULT" if result.faults else fits,
        _memory(compiled, TOPOLOGIES[result.topology]),
        f"{compiled['tflop']:#.3g}" if outcome == "compiled" else "",
        _all_reduces(result.traced, compiled),
        _products(compiled.get("products")),
        f"{compiled['seconds']:.0f} s" if outcome == "compiled" else "",
    )


def _name(program):
    changes = [*program.about]
    changes += [f"{key} {value}" for key, value in program.model.items() if key != "size"]
    if program.precision != "mixed_bfloat16":
        changes.append(program.precision)
    if program.accumulation > 1:
        changes.append(f"in {program.accumulation} parts")
    if program.recompute:
        changes.append("recomputed")
    return ", ".join([program.model["size"], *changes])


def _memory(compiled, topology):
    if compiled.get("outcome") == "compiled":
        return f"{compiled['gib']:.2f} of {topology.memory_gib}"
    if "used_gib" in compiled:
        return f"{compiled['used_gib']:.2f} of {compiled['available_gib']:.2f}"
    return f"more than {topology.memory_gib}" if compiled.get("outcome") == "out of memory" else ""


def _all_reduces(traced, compiled):
    written = traced.get("all_reduces")
    if written is None:
        return ""
    found = compiled.get("all_reduces")
    return f"({written})" if found is None else f"{found} of {written}"


def _products(products):
    if products is None:
        return ""
    known = {"bf16": 0, "f32": 0} | products
    others = [f"{number} {kind}" for kind, number in known.items() if kind not in ("bf16", "f32")]
    return " / ".join([str(known["bf16"]), str(known["f32"]), *others])
