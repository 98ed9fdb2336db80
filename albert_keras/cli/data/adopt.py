"""`albert-keras data adopt`."""

from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start


def adopt(
    folder: Annotated[Path, typer.Argument(help="Folder of record files.", show_default=False)],
    max_seq_length: Annotated[
        int | None,
        options.option(help="S they were written with.", default="as in the first record"),
    ] = None,
    max_predictions_per_seq: Annotated[
        int | None,
        options.option(help="P they were written with.", default="as in the first record"),
    ] = None,
    tokenizer: Annotated[
        Path | None, typer.Option(help="Tokenizer they were made with.", show_default=False)
    ] = None,
    vocab_size: Annotated[
        int | None, typer.Option(help="Pieces, if there is no tokenizer.", show_default=False)
    ] = None,
    objective: Annotated[
        str | None,
        options.option(
            help="What a label of 1 means: sop, swapped; nsp, a random second; or none.",
            default="as the program that wrote them means it",
        ),
    ] = None,
    pattern: Annotated[str, typer.Option(help="Which files are records.")] = "*.tf*record*",
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Take over records of ALBERT's or BERT's own programs, tensorflow/models or NVIDIA.

    They are checked, all of them, and get the dataset_info.json they lack.

    \b
    Example:
      albert-keras data adopt records/ --tokenizer 30k-clean.model
    """
    start(verbose, debug)
    from data_pipeline.records.adoption import adopt_records
    from data_pipeline.records.foreign_records import LABELS
    from data_pipeline.tokenizers.tokenization import Tokenizer

    info = adopt_records(
        folder,
        max_seq_length,
        max_predictions_per_seq,
        tokenizer=Tokenizer.load(tokenizer) if tokenizer else None,
        vocab_size=vocab_size,
        pattern=pattern,
        objective=objective,
    )
    show(
        {
            "path": folder,
            "num_records": info.num_records,
            "fingerprint": info.fingerprint,
            "max_seq_length": info.max_seq_length,
            "max_predictions_per_seq": info.max_predictions_per_seq,
            "written_by": info.builder_version,
            "objective": info.objective,
        },
        [
            f"{info.num_records} records of {info.max_seq_length} pieces, "
            f"{info.max_predictions_per_seq} of them masked, written by {info.builder_version}",
            f"a label of 1 is taken to mean: {LABELS[info.objective]} (--objective)",
            f"{len(info.shards)} files are ready to train on: {folder}",
        ],
        as_json,
    )
