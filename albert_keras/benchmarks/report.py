"""The results of benchmarks as text for people: tables and a line for each single number."""


def data_lines(result):
    """Yields the lines that tell the result of `benchmark_data`."""
    corpus, builds = result["corpus"], result["builds"]
    yield from machine_lines(result["machine"])
    yield (
        f"corpus: {corpus['text_mb']:.1f} MB of text, V = {corpus['vocab_size']}, "
        f"S = {corpus['max_seq_length']}, P = {corpus['max_predictions_per_seq']}; "
        f"median of {corpus['repeats']} runs [lowest..highest]"
    )
    yield ""
    yield "One worker, the corpus as it is"
    yield from table(
        ["", "sequences/s", "of ceiling", "text MB/s", "of ceiling", "CPUs", "peak MB"],
        [
            ["ceiling: SentencePiece alone", *_ceiling_cells(result["ceiling"])],
            *(_build_cells(build) for build in builds),
        ],
    )
    yield ""
    yield "Where the time goes, one worker"
    names = list(builds[0]["stages"])
    yield from table(
        ["", *(cell for build in builds for cell in (_copies(build), "share"))],
        [[name, *_stage_cells(builds, name)] for name in names]
        + [["whole build", *_stage_cells(builds, None)]],
    )
    if result["scaling"]:
        yield ""
        yield "More workers, a larger corpus"
        yield from table(
            [
                "",
                "text MB",
                "workers",
                "gain",
                "seconds",
                "CPU time",
                "CPUs",
                "peak MB",
                "MB per worker",
            ],
            [_scaling_cells(row) for row in result["scaling"]],
        )
    yield ""
    yield f"start-up of a process: {_seconds(result['start_up']['process_seconds'])}"
    for number, seconds in result["start_up"]["workers_seconds"].items():
        yield f"start-up of {number} workers, part of every build of theirs: {_seconds(seconds)}"


def _ceiling_cells(ceiling):
    sequences, text = ceiling["sequences_per_second"], ceiling["text_mb_per_second"]
    cpus = f"{ceiling['cpu_share']:.2f}"
    return [spread(sequences, ",.0f"), "100%", spread(text, ".2f"), "100%", cpus, ""]


def _build_cells(build):
    return [
        _copies(build),
        spread(build["sequences_per_second"], ",.0f"),
        f"{build['sequences_to_ceiling']['median']:.0%}",
        spread(build["text_mb_per_second"], ".2f"),
        f"{build['text_to_ceiling']['median']:.0%}",
        f"{build['cpu_share']:.2f}",
        f"{build['peak_mb']:.0f}",
    ]


def _stage_cells(builds, name):
    for build in builds:
        seconds = build["stages"][name] if name else build["seconds"]
        yield from (f"{seconds:.2f} s", f"{seconds / build['seconds']:.1%}")


def _scaling_cells(row):
    before, after = row["seconds_compared_with"]["median"], row["seconds"]["median"]
    worker_peak = row["worker_peak_mb"]
    return [
        _copies(row),
        f"{row['text_mb']:.0f}",
        f"{row['compared_with']} → {row['workers']}",
        spread(row["gain"], ".2f"),
        f"{before:.1f} → {after:.1f}",
        f"{row['cpu_time']['median'] - 1:+.0%}",
        f"{row['cpu_share_compared_with']:.2f} → {row['cpu_share']:.2f}",
        f"{row['peak_mb']:.0f}",
        "" if worker_peak is None else f"{worker_peak:.0f}",
    ]


def read_lines(result):
    """Yields the lines that tell the result of `benchmark_read`."""
    records = result["records"]
    yield from machine_lines(result["machine"])
    yield (
        f"records: {records['num_records']} of S = {records['max_seq_length']}, "
        f"P = {records['max_predictions_per_seq']}; {records['steps']} batches of "
        f"{records['batch_size']}, median of {records['repeats']} runs [lowest..highest]"
    )
    yield ""
    yield from table(
        ["", "sequences/s", "µs each", "CPU µs each"],
        [
            [
                kind,
                spread(reading["sequences_per_second"], ",.0f"),
                spread(reading["microseconds"], ".1f"),
                spread(reading["cpu_microseconds"], ".1f"),
            ]
            for kind, reading in result["reading"].items()
        ],
    )
    yield ""
    if result["dynamic_cost"]:
        cost, cpu = (spread(result[name], "+.1%") for name in ("dynamic_cost", "dynamic_cpu_cost"))
        yield f"dynamic masks cost {cost} time, {cpu} processor time"
    for step, seconds in result["first_batch"].items():
        yield f"first batch at step {step}: {_seconds(seconds)}"
    if training := result["training"]:
        yield (
            f"a step of {training['model']} takes {_seconds(training['step_seconds'])} at batch "
            f"size {training['batch_size']}: {training['sequences_per_second']:.2f} sequences/s"
        )
        for kind, factor in training["times_faster"].items():
            yield f"  {kind}: {factor:,.0f} times what it consumes"


def _copies(row):
    return f"copies {row['copies']}"


def _seconds(summary):
    return f"{spread(summary, '.2f')} s"


def machine_lines(machine):
    """Yields the lines that tell what `measure.machine` found."""
    yield f"machine: {machine['cpu']}, {machine['cores']} cores, load {machine['load']:.1f} before"
    yield (
        f"         {machine['system']}, Python {machine['python']}, NumPy {machine['numpy']}, "
        f"TensorFlow {machine['tensorflow']}"
    )


def spread(summary, form):
    """Returns a `measure.summary` as str: "median [low..high]", each number in this format."""
    median, low, high = (format(summary[name], form) for name in ("median", "low", "high"))
    return median if low == high else f"{median} [{low}..{high}]"


def table(header, rows):
    """Lays out rows of str: the first column to the left, the others to the right."""
    rows = [list(row) for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for first, *others in rows:
        cells = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join(["  " + first.ljust(widths[0]), *cells]).rstrip()
