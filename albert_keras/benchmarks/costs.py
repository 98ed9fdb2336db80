"""The "Speedup" column of the ALBERT paper, measured: a training step of each model."""

import functools
import os
from collections.abc import Sequence

from albert_keras.benchmarks.measure import in_new_process, in_turn, machine, summary
from albert_keras.benchmarks.memory import measure_step
from albert_keras.benchmarks.report import machine_lines, spread, table
from albert_keras.benchmarks.shapes import Shape, make_shape
from albert_keras.models.weight_count import count_weights
from albert_keras.training.cost.flops import training_flops
from albert_keras.training.cost.memory import step_memory
from data_pipeline.errors import InputError

#: ALBERT, table 2 (https://arxiv.org/abs/1909.11942v6): data throughput in training on TPU v3,
#: BERT-large 1. BERT-xlarge is not in that table.
PUBLISHED_SPEED = {
    "bert-base": 4.7,
    "bert-large": 1.0,
    "bert-xlarge": None,
    "albert-base": 5.6,
    "albert-large": 1.7,
    "albert-xlarge": 0.6,
    "albert-xxlarge": 0.3,
}
MODELS = tuple(PUBLISHED_SPEED)
_REFERENCE = "bert-large"

#: Depths to extrapolate from where a model does not fit.
_DEPTHS = (2, 4)

#: Fraction of the machine's memory that a step may take according to the formula.
_USABLE_FRACTION = 0.8


def benchmark_costs(
    models: Sequence[str] = MODELS,
    batch_size: int = 1,
    max_seq_length: int = 128,
    precision: str = "float32",
    repeats: int = 1,
    memory_bytes: float | None = None,
) -> dict:
    """Measures time and memory of a training step of each model, in processes of their own.

    A model that does not fit is measured with 2 and 4 layers and extrapolated: time and memory
    are linear in the number of layers. Of the tokens 15 % are predicted.

    Args:
        models: Names of `AlbertConfig`.
        precision: "float32", "mixed_bfloat16" or "mixed_float16".
        repeats: Processes of each model (and depth).
        memory_bytes: Memory for a step, by formula; None takes 80 % of the machine's.

    Returns:
        dict for JSON: `machine`, `settings`, and `models`: for each `weights`, `layers`,
        `from_layers` (the numbers of layers measured), `seconds`, `peak_mb` and `step_mb` as
        summaries, `gflops` (useful ones, 10^9 per second), `speed` and `published_speed` relative
        to BERT-large; or `failed`, one line.
    """
    facts = machine()
    memory_bytes = memory_bytes or _USABLE_FRACTION * os.sysconf("SC_PHYS_PAGES") * os.sysconf(
        "SC_PAGE_SIZE"
    )
    shapes = {model: make_shape(model, batch_size, max_seq_length) for model in models}
    depths = {
        model: depths_to_measure(shape, precision, memory_bytes) for model, shape in shapes.items()
    }
    runs = in_turn(
        {
            (model, depth): functools.partial(_try, at_depth(shape, depth), precision)
            for model, shape in shapes.items()
            for depth in depths[model]
        },
        repeats,
    )
    rows = {
        model: _row(shape, depths[model], [runs[model, depth] for depth in depths[model]])
        for model, shape in shapes.items()
    }
    reference = rows.get(_REFERENCE, {}).get("seconds")
    for model, row in rows.items():
        is_compared = reference and "seconds" in row
        row["speed"] = reference["median"] / row["seconds"]["median"] if is_compared else None
        row["published_speed"] = PUBLISHED_SPEED.get(model)
    return {
        "machine": facts,
        "settings": {
            "batch_size": batch_size,
            "max_seq_length": max_seq_length,
            "precision": precision,
            "repeats": repeats,
            "memory_bytes": memory_bytes,
        },
        "models": rows,
    }


def depths_to_measure(shape: Shape, precision: str, memory_bytes: float) -> tuple[int, ...]:
    """Returns the numbers of layers to measure: the model's own, or two small ones; () if neither
    fits into the memory, by formula."""
    layers = shape.config.num_hidden_layers

    def fits(depth):
        config = shape.config.replace(num_hidden_layers=depth)
        lengths = shape.max_seq_length, shape.predictions
        return step_memory(config, shape.batch_size, *lengths, precision).total <= memory_bytes

    if fits(layers):
        return (layers,)
    return _DEPTHS if layers > max(_DEPTHS) and fits(max(_DEPTHS)) else ()


def at_depth(shape: Shape, depth: int) -> Shape:
    """Returns the Shape with another number of layers."""
    return shape._replace(config=shape.config.replace(num_hidden_layers=depth))


def at_full_depth(depths: Sequence[int], values: Sequence[float], layers: int) -> float:
    """Extends a line through values at two depths to all layers; one value stays as it is."""
    if len(values) == 1:
        return values[0]
    (low, high), (first, second) = depths, values
    return first + (second - first) * (layers - low) / (high - low)


def _try(shape, precision):
    try:
        return in_new_process(measure_step, shape, precision, {})[0]
    except InputError as error:
        return {"failed": str(error)}


def _row(shape, depths, runs):
    layers = shape.config.num_hidden_layers
    row = {
        "weights": count_weights(shape.config).total,
        "layers": layers,
        "from_layers": list(depths),
    }
    if not depths:
        return row | {"failed": f"does not fit, not even with {max(_DEPTHS)} layers"}
    failed = [run["failed"] for kind in runs for run in kind if "failed" in run]
    if failed:
        return row | {"failed": failed[0]}
    for name in ("seconds", "peak_mb", "step_mb"):
        rounds = zip(*([run[name] for run in kind] for kind in runs), strict=True)
        row[name] = summary(at_full_depth(depths, values, layers) for values in rounds)
    flops = training_flops(
        shape.config, shape.batch_size, shape.max_seq_length, shape.predictions, sentence_head=False
    )
    return row | {"gflops": flops / row["seconds"]["median"] / 1e9}


def costs_lines(result):
    """Yields the lines of the result of `benchmark_costs`."""
    settings, models = result["settings"], result["models"]
    yield from machine_lines(result["machine"])
    yield (
        f"a training step, B = {settings['batch_size']}, S = {settings['max_seq_length']}, "
        f"{settings['precision']}; {settings['repeats']} process(es) of each; "
        f"up to {settings['memory_bytes'] / 1e9:.1f} GB by formula"
    )
    yield ""
    yield from table(
        ["", "weights", "seconds", "GFLOP/s", "peak MB", "speed", "paper", "measured"],
        [_cells(name, row) for name, row in models.items()],
    )
    yield ""
    yield "speed: relative to BERT-large; paper: ALBERT, table 2 (TPU v3), which has no BERT-xlarge"
    for name, row in models.items():
        if "failed" in row:
            yield f"{name}: {row['failed']}"
        elif row["from_layers"] != [row["layers"]]:
            depths = " and ".join(map(str, row["from_layers"]))
            yield (
                f"{name}: does not fit; extrapolated from {depths} of {row['layers']} layers, "
                "linear in their number"
            )


def _cells(name, row):
    weights = f"{row['weights'] / 1e6:,.0f} M"
    paper = f"{row['published_speed']:.1f}" if row["published_speed"] else "-"
    if "failed" in row:
        return [name, weights, "-", "-", "-", "-", paper, "no"]
    is_whole = row["from_layers"] == [row["layers"]]
    return [
        name,
        weights,
        spread(row["seconds"], ".2f"),
        f"{row['gflops']:,.0f}",
        spread(row["peak_mb"], ",.0f"),
        "-" if row["speed"] is None else f"{row['speed']:.2f}",
        paper,
        "whole" if is_whole else f"from {'+'.join(map(str, row['from_layers']))} layers",
    ]
