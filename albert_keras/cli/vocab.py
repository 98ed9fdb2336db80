"""`albert-keras vocab`."""

from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start


def vocab(
    corpus: options.Corpus,
    out: Annotated[Path, typer.Option(help="Folder to make.", show_default=False)],
    size: Annotated[int, typer.Option(help="Pieces in the vocabulary.")] = 30_000,
    lower_case: Annotated[bool, typer.Option(help="Fold case.")] = True,
    strip_accents: Annotated[bool, typer.Option(help="Drop accents: é becomes e.")] = True,
    corpus_format: options.CorpusFormat = "auto",
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Train a SentencePiece vocabulary on your text.

    \b
    Example:
      albert-keras vocab --corpus 'books/*.txt' --size 8000 --out tokenizer/
    """
    start(verbose, debug)
    from data_pipeline.corpus import read_corpus
    from data_pipeline.files import check_output_folder
    from data_pipeline.vocabulary import train_vocabulary

    check_output_folder(out)
    paragraphs = (
        paragraph
        for document in read_corpus(corpus, corpus_format)
        for paragraph in document.paragraphs
    )
    result = train_vocabulary(
        paragraphs, out, size, lower_case=lower_case, strip_accents=strip_accents
    )
    values = {"path": result.path, "size": result.size, "sha256": result.sha256}
    show(
        values,
        [
            f"vocabulary of {result.size} pieces: {result.path}",
            f"next: albert-keras data build --corpus ... --tokenizer {result.path} --out records/",
        ],
        as_json,
    )
