"""Text of the results of benchmarks: tables, and lines that several of them have."""


def machine_lines(machine):
    """Yields the lines of what `measure.machine` returns."""
    yield f"machine: {machine['cpu']}, {machine['cores']} cores, load {machine['load']:.1f} before"
    yield (
        f"         {machine['system']}, Python {machine['python']}, NumPy {machine['numpy']}, "
        f"TensorFlow {machine['tensorflow']}"
    )


def product_lines(products):
    """Yields the peaks that `% of peak` refers to."""
    for dtype, peak in products.items():
        yield f"fastest {dtype} product: {peak['flops'] / 1e9:,.0f} GFLOP/s ({peak['by']})"


def failure_lines(contestants):
    """Yields a line for each contestant that could not be measured."""
    for label, found in contestants.items():
        if "failed" in found:
            yield f"  {label}: {found['failed']}"


def version_line(contestants) -> str:
    """Returns the versions of the libraries that took part."""
    versions = {}
    for found in contestants:
        versions |= found.get("facts", {}).get("versions", {})
    return ", ".join(" ".join(pair) for pair in versions.items())


def spread(summary: dict[str, float], form: str, scale=1.0) -> str:
    """Formats a `measure.summary` as "median [low..high]"."""
    median, low, high = (format(summary[name] * scale, form) for name in ("median", "low", "high"))
    return median if low == high else f"{median} [{low}..{high}]"


def table(header, rows):
    """Yields the lines of a table of str: the first column to the left, the others to the right."""
    rows = [list(row) for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join(["  " + first.ljust(widths[0]), *cells]).rstrip()
