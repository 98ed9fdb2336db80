"""The result of `benchmark_costs` as text for people."""

from albert_keras.benchmarks.report import machine_lines, spread, table


def costs_lines(result):
    """Yields the lines that tell the result of `benchmark_costs`."""
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
                "linear in the depth"
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
