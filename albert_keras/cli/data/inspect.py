"""`albert-keras data inspect`."""

from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start


def inspect(
    records: Annotated[Path, typer.Argument(help="Folder of records.", show_default=False)],
    examples: Annotated[int, typer.Option(min=0, help="Records to show as text.")] = 3,
    seed: Annotated[int, typer.Option(min=0, help="Decides which records are looked at.")] = 0,
    sample: Annotated[int, typer.Option(min=1, help="Records to look at.")] = 2000,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png", help="Picture to draw.", show_default=False),
    ] = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Show what is in a folder of records: numbers of a random sample, and examples to read.

    \b
    Example:
      albert-keras data inspect records/ --examples 5 --figure records.png
    """
    start(verbose, debug)
    from data_pipeline.errors import InputError
    from data_pipeline.reports.inspection import inspect_records

    seen = inspect_records(records, examples, seed, sample, figure)
    show(_plain(seen) | {"figure": figure}, _lines(seen, figure), as_json)
    if seen.problems:
        count = f"{len(seen.problems)} problem{'s' if len(seen.problems) > 1 else ''}"
        lines = [f"  {problem}" for problem in seen.problems]
        raise InputError("\n".join([f"{count} in the records of `{seen.folder}`:", *lines]))


def _plain(value):
    """Turns named tuples into dicts, so that JSON has their names."""
    if hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value


def _lines(seen, figure):
    lengths = ", ".join(f"{name} {length}" for name, length in seen.lengths.items())
    yield f"{seen.num_records} records, {seen.num_sampled} of them looked at: {seen.folder}"
    yield f"  length, predictions  S = {seen.max_seq_length}, P = {seen.max_predictions_per_seq}"
    yield f"  input format         {seen.input_format or 'not known'}, objective {seen.objective}"
    yield f"  length of sequences  {lengths}"
    yield f"  padding              {seen.padding:.1%} of the places"
    if seen.label_1:
        share, low, high = seen.label_1
        yield f"  label 1              {share:.1%} (95 % interval {low:.1%} to {high:.1%})"
    if seen.word_starts is not None:
        yield f"  word starts          {seen.word_starts:.1%} of the pieces"
    yield from _mask_lines(seen.masks)
    for example in seen.examples:
        yield ""
        padding = f", {example.padding} places of padding" if example.padding else ""
        yield f"record {example.record}, order: {example.order}{padding}"
        for segment in example.segments:
            yield f"  {segment}"
    if figure is not None:
        yield ""
        yield f"picture: {figure}"


def _mask_lines(masks):
    if masks is None:
        yield "  masks                drawn by the reader"
        return
    yield (
        f"  predictions          {masks.per_sequence:.1f} per sequence, "
        f"{masks.quota_reached:.1%} of the sequences have all they should"
    )
    yield (
        f"  shown as             [MASK] {masks.mask:.1%}, the piece itself {masks.kept:.1%}, "
        f"another one {masks.random:.1%}"
    )
    if masks.run_words is None:
        yield "  words together       where words begin is not known"
    else:
        runs = ", ".join(f"{size}: {share:.1%}" for size, share in masks.run_words.items())
        yield f"  words together       {runs} of the runs (n-grams side by side are one run)"
    pieces = ", ".join(f"{piece} {count}" for piece, count in masks.top_pieces)
    yield f"  most often masked    {pieces}"
