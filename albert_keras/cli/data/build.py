"""`albert-keras data build`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start


def _check_beam_options(context: typer.Context, words):
    """Refuses words before `--`, which typer takes for the same argument, and our own options."""
    ours = {name for option in context.command.params for name in option.opts}
    for word in words or ():
        if not word.startswith("--"):
            context.fail(
                f"Got unexpected extra argument ({word}). A pattern such as 'books/*.txt' needs "
                "quotes; an option of Apache Beam reads `--name=value`, behind `--`."
            )
        if (name := word.partition("=")[0]) in ours:
            context.fail(f"`{name}` belongs before `--`; behind it are options of Apache Beam.")
    return words


def build(
    corpus: options.Corpus,
    tokenizer: Annotated[
        Path, options.option(help="Folder made by `vocab`, a .model file or a vocab.txt.")
    ],
    out: Annotated[
        str,
        options.option(metavar="PATH", help="Folder to make; an unfinished build there goes on."),
    ],
    beam_options: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="-- BEAM_OPTION",
            help="Options of Apache Beam, each --name=value; only with --runner.",
            callback=_check_beam_options,
            show_default=False,
        ),
    ] = None,
    max_seq_length: Annotated[
        int | None, options.option(help="Pieces per record.", default="512")
    ] = None,
    max_predictions_per_seq: Annotated[
        int | None, options.option(help="Masked pieces per record.", default="15 %")
    ] = None,
    copies: Annotated[
        int | None, options.option(help="Passes over the corpus, each masked anew.", default="1")
    ] = None,
    input_format: Annotated[
        str | None,
        options.option(
            help="segment-pair, sentence-pair, full-sentences or doc-sentences.",
            default="segment-pair",
        ),
    ] = None,
    objective: Annotated[
        str | None,
        options.option(
            help="sop: swapped or not; nsp: random second; none.", default="by input format"
        ),
    ] = None,
    static_masks: Annotated[
        bool | None,
        options.option(
            "--static-masks/--no-static-masks",
            help="Write masks into the records, or leave them to the reader.",
            default="yes",
        ),
    ] = None,
    language: Annotated[
        str | None, options.option(help="Code, for sentence splitting.", default="en")
    ] = None,
    splitter: Annotated[
        str | None,
        options.option(help="sentencex, tensorflow-text, line or none.", default="sentencex"),
    ] = None,
    num_shards: Annotated[
        int | None, options.option(help="Record files.", default="by size of the corpus")
    ] = None,
    preset: Annotated[
        str,
        typer.Option(help="Settings to start from: albert, reference, bert or roberta."),
    ] = "albert",
    corpus_format: options.CorpusFormat = "auto",
    workers: Annotated[
        int | None, options.option(min=1, help="Processes.", default="one per processor")
    ] = None,
    runner: Annotated[
        str | None,
        options.option(
            help="Build with Apache Beam: DirectRunner, DataflowRunner, FlinkRunner, SparkRunner, "
            "PrismRunner, ... An unfinished build starts anew.",
        ),
    ] = None,
    seed: options.Seed = None,
    config: options.ConfigFile = None,
    assignments: options.Set = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Turn text into pre-training records; the same command goes on with an interrupted build.

    \b
    Example:
      albert-keras data build --corpus 'books/*.txt' --tokenizer tokenizer/ \\
          --out records/ --max-seq-length 128
    Example on other machines, the same bytes:
      albert-keras data build --corpus 'gs://b/*.txt' --tokenizer tokenizer/ \\
          --out gs://b/records --runner DataflowRunner -- --project=p --region=r
    """
    start(verbose, debug)
    from albert_keras.cli.arguments import read_values
    from data_pipeline.config import PretrainingDataConfig
    from data_pipeline.tokenizers.tokenization import Tokenizer

    beam_flags = _beam_flags(runner, workers, beam_options or [])
    flags = {
        "max_seq_length": max_seq_length,
        "max_predictions_per_seq": max_predictions_per_seq,
        "copies": copies,
        "input_format": input_format,
        "objective": objective,
        "static_masks": static_masks,
        "language": language,
        "splitter": splitter,
        "num_shards": num_shards,
        "seed": seed,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    values = read_values(config, assignments) | given
    settings = PretrainingDataConfig.preset(preset, **values)
    what = (corpus, Tokenizer.load(tokenizer), out, settings, corpus_format)
    if beam_flags:
        from data_pipeline.building.beam import build_with_beam

        result = build_with_beam(*what, beam_flags)
    else:
        from data_pipeline.building.build import build_records

        result = build_records(*what, workers, transient_progress=sys.stderr.isatty())
    counts = result.info.statistics
    show(
        {
            "path": result.path,
            "num_records": result.info.num_records,
            "num_shards": len(result.info.shards),
            "shards_reused": result.shards_reused,
            "fingerprint": result.info.fingerprint,
            "seconds": round(result.seconds, 1),
            **counts,
        },
        [
            f"{result.info.num_records} records of {settings.max_seq_length} pieces in "
            f"{len(result.info.shards)} shards from {counts['documents']} documents in "
            f"{result.seconds:.0f} s: {result.path}",
            *_worth_knowing(result.info, settings),
            _next_step(result.path),
        ],
        as_json,
    )


def _beam_flags(runner, workers, beam_options):
    """Returns all that Apache Beam is to be told, or an empty list for a build without it."""
    from data_pipeline.errors import InputError

    if runner is None:
        if beam_options:
            raise InputError(
                "What stands behind `--` is for Apache Beam, which only `--runner NAME` calls. "
                f"Received: {' '.join(beam_options)}."
            )
        return []
    flags = [f"--runner={runner}"]
    if workers is not None:
        if runner.lower().removesuffix("runner") != "direct":
            raise InputError(
                f"`--workers` should not be given with `--runner {runner}`, which has options of "
                f"its own for that, behind `--`. Received: --workers {workers}."
            )
        flags += [f"--direct_num_workers={workers}", "--direct_running_mode=multi_processing"]
    return [*flags, *beam_options]


def _next_step(path):
    from data_pipeline.text.storage import is_remote

    if is_remote(path):  # records are read from this machine's disk
        return f"next: copy {path} to a disk, and albert-keras pretrain --data ... --out runs/..."
    return f"next: albert-keras pretrain --data {path} --out runs/..."


def _worth_knowing(info, settings):
    counts = info.statistics
    said = [f"{1 - counts['real_positions'] / counts['positions']:.1%} of the places are padding"]
    if settings.label_objective != "none":
        said.insert(0, f"{counts['label_1'] / counts['instances']:.1%} of the pairs have label 1")
    said.insert(0, f"{counts['predictions']} masked pieces")
    if not settings.static_masks:
        said[0] = "masks are left to the reader"
    if counts["single_sentences_skipped"]:
        said.append(f"{counts['single_sentences_skipped']} stretches of one sentence left out")
    yield "; ".join(said)
