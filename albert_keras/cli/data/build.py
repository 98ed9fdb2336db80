"""`albert-keras data build | adopt`."""

from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start

app = typer.Typer(help="Make and take over records.", no_args_is_help=True, rich_markup_mode=None)

Length = Annotated[
    int | None, typer.Option("--max-seq-length", help="Pieces per record.", show_default="512")
]
Predictions = Annotated[
    int | None,
    typer.Option(
        "--max-predictions-per-seq", help="Masked pieces per record.", show_default="15 %"
    ),
]


@app.command("build")
def build(
    corpus: options.Corpus,
    tokenizer: Annotated[
        Path, typer.Option(help="Folder made by `vocab`, or a .model file.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="Folder to make.", show_default=False)],
    max_seq_length: Length = None,
    max_predictions_per_seq: Predictions = None,
    copies: Annotated[
        int | None,
        typer.Option(help="Passes over the corpus, each masked anew.", show_default="1"),
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(help="sop: segments swapped or not; nsp: random second.", show_default="sop"),
    ] = None,
    language: Annotated[
        str | None, typer.Option(help="Code, for sentence splitting.", show_default="en")
    ] = None,
    corpus_format: options.CorpusFormat = "auto",
    seed: options.Seed = None,
    config: options.ConfigFile = None,
    assignments: options.Set = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Turn text into pre-training records.

    \b
    Example:
      albert-keras data build --corpus 'books/*.txt' --tokenizer tokenizer/ \\
          --out records/ --max-seq-length 128
    """
    start(verbose, debug)
    from albert_keras.cli.arguments import read_values
    from data_pipeline.config import PretrainingDataConfig
    from data_pipeline.tokenization import Tokenizer

    flags = {
        "max_seq_length": max_seq_length,
        "max_predictions_per_seq": max_predictions_per_seq,
        "copies": copies,
        "objective": objective,
        "language": language,
        "seed": seed,
    }
    given = {name: value for name, value in flags.items() if value is not None}
    settings = PretrainingDataConfig(**read_values(config, assignments) | given)
    loaded = Tokenizer.load(tokenizer)

    from data_pipeline.build import build_records

    result = build_records(corpus, loaded, out, settings, corpus_format)
    counts = result.info.statistics
    show(
        {
            "path": result.path,
            "num_records": result.info.num_records,
            "fingerprint": result.info.fingerprint,
            "seconds": round(result.seconds, 1),
            **counts,
        },
        [
            f"{result.info.num_records} records of {settings.max_seq_length} pieces from "
            f"{counts['documents']} documents in {result.seconds:.0f} s: {result.path}",
            f"{counts['predictions']} masked pieces; "
            f"{counts['label_1'] / counts['instances']:.1%} of the pairs have label 1; "
            f"{1 - counts['real_positions'] / counts['positions']:.1%} of the places are padding",
            f"next: albert-keras pretrain --data {result.path} --out runs/...",
        ],
        as_json,
    )


@app.command("adopt")
def adopt(
    folder: Annotated[Path, typer.Argument(help="Folder of record files.", show_default=False)],
    max_seq_length: Annotated[int, typer.Option(help="S they were written with.")],
    max_predictions_per_seq: Annotated[int, typer.Option(help="P they were written with.")],
    tokenizer: Annotated[
        Path | None, typer.Option(help="Tokenizer they were made with.", show_default=False)
    ] = None,
    vocab_size: Annotated[
        int | None, typer.Option(help="Pieces, if there is no tokenizer.", show_default=False)
    ] = None,
    pattern: Annotated[str, typer.Option(help="Which files are records.")] = "*.tfrecord*",
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Take over records of google-research/albert: write the dataset_info.json they lack.

    \b
    Example:
      albert-keras data adopt records/ --max-seq-length 512 --max-predictions-per-seq 20 \\
          --tokenizer 30k-clean.model
    """
    start(verbose, debug)
    from data_pipeline.adoption import adopt_records
    from data_pipeline.tokenization import Tokenizer

    info = adopt_records(
        folder,
        max_seq_length,
        max_predictions_per_seq,
        tokenizer=Tokenizer.load(tokenizer) if tokenizer else None,
        vocab_size=vocab_size,
        pattern=pattern,
    )
    show(
        {"path": folder, "num_records": info.num_records, "fingerprint": info.fingerprint},
        [f"{info.num_records} records in {len(info.shards)} files are ready to train on: {folder}"],
        as_json,
    )
