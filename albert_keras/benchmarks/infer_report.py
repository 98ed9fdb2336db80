"""The result of `benchmark infer` as text for people."""

from albert_keras.benchmarks.contest_report import failure_lines, product_lines
from albert_keras.benchmarks.report import machine_lines, spread, table

_HEADER = (
    "",
    "dtype",
    "ms",
    "p5..p95",
    "tokens/s",
    "sequences/s",
    "GFLOP/s",
    "of peak",
    "peak MB",
    "ours faster, times",
    "differs by",
)


def infer_lines(result):
    """Yields the lines that tell the result of `benchmark_infer`."""
    settings = result["settings"]
    yield from machine_lines(result["machine"])
    yield (
        f"the vector of a text by {settings['model']}, V = {settings['vocab_size']}; "
        f"median of {settings['repeats']} rounds [lowest..highest]"
    )
    yield from product_lines(result["products"])
    for case in result["cases"]:
        yield ""
        yield (
            f"S = {case['max_seq_length']}, B = {case['batch_size']}, "
            f"{case['useful_flops'] / 1e9:,.1f} useful GFLOP"
        )
        contestants = case["contestants"]
        yield from table(
            _HEADER, [_cells(found) for found in contestants.values() if "failed" not in found]
        )
        yield from failure_lines(contestants)
    yield ""
    for case in result["cases"]:
        yield from _closing_lines(case)
    yield from _version_lines(result["cases"])


def _cells(found):
    latency = found["latency"]
    return [
        found["name"],
        found["dtype"],
        spread(_milliseconds(found["seconds"]), ".1f"),
        f"{latency['p5'] * 1e3:.1f}..{latency['p95'] * 1e3:.1f}",
        f"{found['tokens_per_second']['median']:,.0f}",
        f"{found['sequences_per_second']['median']:,.1f}",
        f"{found['flops']['median'] / 1e9:,.0f}",
        f"{found['share_of_peak']['median']:.0%}",
        f"{found['peak_mb']:,.0f}",
        spread(found["ratio"], ".2f") if found["ratio"] else "",
        f"{found['facts']['difference']:.1e}",
    ]


def _closing_lines(case):
    """Yields for each of our exports: how many times as fast as each peer, and its overhead."""
    where = f"S {case['max_seq_length']}, batch {case['batch_size']}"
    peers = [found for found in case["contestants"].values() if found.get("ratio")]
    for precision, overhead in case["overhead"].items():
        faster = [
            f"{found['ratio']['median']:.2f} × {found['name']}"
            for found in peers
            if found["dtype"] == precision
        ]
        yield f"ours {precision}, {where}: {', '.join(faster) or 'no peer at this precision'}"
        short, text = (overhead[name]["median"] * 1e3 for name in ("short_seconds", "text_seconds"))
        yield (
            f"  overhead of text {spread(overhead['overhead'], '.1%')}; "
            f"a short text takes {short:.1f} ms instead of {text:.1f}"
        )


def _version_lines(cases):
    versions = {}
    for case in cases:
        for found in case["contestants"].values():
            versions |= found.get("facts", {}).get("versions", {})
    if versions:
        yield ", ".join(" ".join(pair) for pair in versions.items())


def _milliseconds(seconds):
    return {name: value * 1e3 for name, value in seconds.items()}
