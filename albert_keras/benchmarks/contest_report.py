"""The results of contests as text for people."""

from albert_keras.benchmarks.report import machine_lines, spread, table


def train_lines(result):
    """Yields the lines that tell the result of `benchmark_train`."""
    settings = result["settings"]
    yield from machine_lines(result["machine"])
    yield (
        f"a training step of {settings['model']}: B = {settings['batch_size']}, "
        f"S = {settings['max_seq_length']}, P = {settings['predictions']}, "
        f"V = {settings['vocab_size']}, {settings['useful_flops'] / 1e9:,.1f} useful GFLOP"
    )
    yield f"median of {settings['repeats']} rounds [lowest..highest]"
    yield from product_lines(result["products"])
    yield ""
    yield from contest_table(result["contestants"], "step, s")
    yield from failure_lines(result["contestants"])
    yield ""
    yield from _training_table(result["contestants"])
    yield ""
    for comparison in result["comparisons"]:
        yield from _comparison_lines(comparison)


def product_lines(products):
    """Yields the lines that tell what shares of the peak are taken of."""
    for dtype, peak in products.items():
        yield f"fastest {dtype} product: {peak['flops'] / 1e9:,.0f} GFLOP/s ({peak['by']})"


def contest_table(contestants, time_header, time_scale=1.0):
    """Yields a table of those that were measured.

    Args:
        contestants: dict. Of `train.describe`.
        time_header: str. What a run is, and the unit.
        time_scale: float. Of that unit in a second: 1,000 for milliseconds.
    """
    header = [
        "",
        "dtype",
        time_header,
        "tokens/s",
        "GFLOP/s",
        "of peak",
        "peak MB",
        "ours faster, times",
    ]
    yield from table(
        header,
        [
            [
                found["name"],
                found["dtype"],
                spread(_scaled(found["seconds"], time_scale), ".3f" if time_scale == 1 else ".1f"),
                f"{found['tokens_per_second']['median']:,.0f}",
                f"{found['flops']['median'] / 1e9:,.0f}",
                f"{found['share_of_peak']['median']:.0%}",
                f"{found['peak_mb']:,.0f}",
                spread(found["ratio"], ".2f") if found["ratio"] else "",
            ]
            for found in contestants.values()
            if "failed" not in found
        ],
    )


def failure_lines(contestants):
    """Yields a line for each of those that could not be measured."""
    for label, found in contestants.items():
        if "failed" in found:
            yield f"  {label}: {found['failed']}"


def memory_lines(result):
    """Yields the lines that tell the result of `benchmark_memory`."""
    settings = result["settings"]
    yield from machine_lines(result["machine"])
    yield (
        f"a step of {settings['model']}, B = {settings['batch_size']}, "
        f"S = {settings['max_seq_length']}, {settings['precision']}; "
        f"median of {settings['repeats']} process(es) each"
    )
    yield ""
    kept = result["kinds"]["blocks kept"]
    peers = result.get("peers", {})
    rows = [
        [
            name,
            f"{kind['peak_mb']['median']:,.0f}",
            f"{kind['step_mb']['median']:,.0f}",
            f"{kept['step_mb']['median'] / kind['step_mb']['median']:.1f}",
            f"{kind['seconds']['median']:.2f}",
            f"{kind['seconds']['median'] / kept['seconds']['median'] - 1:+.0%}",
        ]
        for name, kind in result["kinds"].items()
    ]
    rows += [
        [
            label,
            f"{found['peak_mb']:,.0f}",
            f"{found['step_mb']:,.0f}",
            f"{kept['step_mb']['median'] / found['step_mb']:.1f}",
            f"{found['seconds']['median']:.2f}",
            f"{found['seconds']['median'] / kept['seconds']['median'] - 1:+.0%}",
        ]
        for label, found in peers.items()
        if "failed" not in found
    ]
    yield from table(["", "peak MB", "step alone", "less, times", "seconds", "time"], rows)
    yield from failure_lines(peers)


def _training_table(contestants):
    """Yields a table of what was trained, so that one sees that all did the same work."""
    yield from table(
        ["", "dtype", "weights", "optimizer", "loss", "updates", "ready after", "device"],
        [
            [
                found["name"],
                found["dtype"],
                f"{facts['weights']:,}",
                facts["optimizer"],
                f"{facts['first_loss']:.2f} → {facts['last_loss']:.2f}",
                str(facts["updates"]),
                f"{found['start_seconds']:.1f} s",
                facts["device"],
            ]
            for found in contestants.values()
            if (facts := found.get("facts"))
        ],
    )
    versions = {}
    for found in contestants.values():
        versions |= found.get("facts", {}).get("versions", {})
    yield f"  {', '.join(' '.join(pair) for pair in versions.items())}"


def _comparison_lines(found):
    ours = f"ours, {found['dtype']}"
    if found["failed"]:
        yield f"{ours}: {found['failed']}"
    elif found["fastest_peer"] is None:
        yield f"{ours}: no peer was measured"
    else:
        faster = spread(found["faster"], ".2f")
        yield f"{ours}: {faster} times the fastest peer ({found['fastest_peer']})"
        if found["leanest_peer"]:
            yield (
                f"{ours}: {found['memory']:.2f} times the memory of the leanest peer "
                f"({found['leanest_peer']})"
            )


def _scaled(values, factor):
    return {name: value * factor for name, value in values.items()}
