"""`albert-keras data build`."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option

from albert_keras.cli.arguments import read_values
from albert_keras.cli.command import Output, command
from albert_keras.cli.options import Assignments, Corpus, CorpusFormat, TokenizerPath
from albert_keras.cli.output import shell
from albert_keras.report import count_of, percent
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError


@command(
    config=PretrainingDataConfig,
    shown="max_seq_length max_predictions_per_seq copies input_format objective "
    "static_masks language splitter seed",
)
def build(
    context: Context,
    *,
    corpus: Corpus,
    tokenizer: TokenizerPath,
    out: Annotated[str, Option(metavar="PATH")],
    beam_options: Annotated[list[str] | None, Argument(metavar="-- BEAM_OPTION")] = None,
    preset: str = "albert",
    flags,
    corpus_format: CorpusFormat = "auto",
    workers: Annotated[int | None, Option(show_default="one per processor", min=1)] = None,
    runner: str | None = None,
    config: Annotated[Path | None, Option(metavar="FILE")] = None,
    assignments: Assignments = None,
):
    """Convert text to pre-training records, or resume a build.

    Example:
      albert-keras data build --corpus 'books/*.txt' --tokenizer tokenizer/ \\
          --out records/ --max-seq-length 128

    On other machines, with identical records:
      albert-keras data build --corpus gs://b/text --tokenizer tokenizer/ \\
          --out gs://b/records --runner DataflowRunner -- --project=p --region=r

    Args:
      out: Output folder; an unfinished build is resumed.
      beam_options: Options of Apache Beam as --name=value; only with --runner.
      preset: Settings to start from: albert, reference, bert or roberta.
      workers: Number of processes.
      runner: Build with Apache Beam on this runner: DirectRunner, DataflowRunner, FlinkRunner,
        SparkRunner or PrismRunner. An unfinished build is restarted.
      config: YAML or JSON file of settings.
    """
    beam_flags = _beam_flags(context, runner, workers, beam_options or [])
    from albert_keras.formats.vocabulary import load_tokenizer

    values = read_values(config, assignments, kind=None) | flags
    settings = PretrainingDataConfig.preset(preset, **values)
    loaded = load_tokenizer(tokenizer)
    arguments = (corpus, loaded, out, settings, corpus_format)
    if beam_flags:
        from data_pipeline.building.beam import build_with_beam

        result = build_with_beam(*arguments, beam_flags)
    else:
        from data_pipeline.building.build import build_records

        result = build_records(*arguments, workers)
    info = result.info
    values = {
        "path": result.path,
        "num_records": info.num_records,
        "num_shards": len(info.shards),
        "shards_reused": result.shards_reused,
        "fingerprint": info.fingerprint,
        "seconds": round(result.seconds, 1),
        "kept_text": result.kept_text,
        **info.statistics,
    }
    return Output(values, _lines(result, settings))


def _beam_flags(context, runner, workers, beam_options):
    """Returns the options of Apache Beam, or an empty list for a build without it."""
    for word in beam_options:  # words before `--` are the same argument for typer
        if not word.startswith("--"):
            context.fail(
                f"Got unexpected extra argument ({word}). Quote a pattern such as 'books/*.txt'. "
                "Options of Apache Beam have the form `--name=value` and follow `--`."
            )
    if runner is None:
        if beam_options:
            raise InputError(
                "Options after `--` are for Apache Beam and require `--runner NAME`. "
                f"Received: {' '.join(beam_options)}."
            )
        return []
    if workers is not None:
        raise InputError(
            "`--workers` must not be given with `--runner`. Set the number of workers of Beam "
            f"after `--`. Received: --workers {workers}."
        )
    return [f"--runner={runner}", *beam_options]


def _lines(result, settings):
    from data_pipeline.text.storage import is_remote

    info, counts = result.info, result.info.statistics
    yield (
        f"{info.num_records} records of {settings.max_seq_length} tokens in "
        f"{count_of(len(info.shards), 'shard')} from {count_of(counts['documents'], 'document')} "
        f"in {result.seconds:.0f} s: {result.path}"
    )
    masked = f"{counts['predictions']} masked tokens"
    details = [masked if settings.static_masks else "the reader samples the masks"]
    padding = 1 - counts["real_positions"] / counts["positions"]
    details.append(f"{percent(padding)} of positions are padding")
    details.append(f"{percent(result.kept_text)} of the text is kept")
    if skipped := counts["single_sentences_skipped"]:
        details.append(f"{count_of(skipped, 'stretch')} of a single sentence skipped")
    yield "; ".join(details)
    # Records are read from a local disk.
    first = f"copy {result.path} to a local disk, then " if is_remote(result.path) else ""
    words = "--data", "..." if first else result.path, "--out", "runs/..."
    yield f"next: {first}{shell('albert-keras', 'pretrain', *words)}"
