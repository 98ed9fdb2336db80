"""`albert-keras data adopt`."""

from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start


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
