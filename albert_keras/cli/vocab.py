"""`albert-keras vocab` and `albert-keras vocab extend`."""

from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start

#: New pieces that are shown, those that save most first.
_SHOWN = 20


def vocab(
    context: typer.Context,
    corpus: Annotated[
        list[str] | None,
        options.option(metavar="PATH", help="Text file, folder or 'glob'; may be repeated."),
    ] = None,
    out: Annotated[Path | None, options.option(help="Folder to make.")] = None,
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
    if context.invoked_subcommand is not None:
        if corpus or out:
            context.fail(f"Options belong behind `{context.invoked_subcommand}`.")
        return
    for name, value in (("--corpus", corpus), ("--out", out)):
        if not value:
            context.fail(f"Missing option '{name}'.")
    start(verbose, debug)
    from data_pipeline.files import check_output_folder
    from data_pipeline.tokenizers.vocabulary import train_vocabulary

    check_output_folder(out)
    result = train_vocabulary(
        _paragraphs(corpus, corpus_format),
        out,
        size,
        lower_case=lower_case,
        strip_accents=strip_accents,
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


def extend(
    tokenizer: Annotated[
        Path, options.option(help="The old one: folder made by `vocab`, or a .model file.")
    ],
    corpus: options.Corpus,
    add: Annotated[int, options.option(help="Pieces to add.")],
    out: Annotated[Path, options.option(help="Folder to make.")],
    corpus_format: options.CorpusFormat = "auto",
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Add the pieces that another kind of text calls for; the old ones keep their ids.

    \b
    Example:
      albert-keras vocab extend --tokenizer runs/books/tokenizer --corpus 'medicine/*.txt' \\
          --add 2000 --out tokenizer-medicine/
    """
    start(verbose, debug)
    from data_pipeline.tokenizers.tokenization import Tokenizer
    from data_pipeline.tokenizers.vocabulary_extension import extend_vocabulary

    old = Tokenizer.load(tokenizer)
    result = extend_vocabulary(old, _paragraphs(corpus, corpus_format), out, add)
    new = Tokenizer.load(result.path)
    added = [new.piece_of(id) for id in range(old.vocab_size, new.vocab_size)]
    values = {"path": result.path, "size": result.size, "sha256": result.sha256, "added": added}
    show(
        values,
        [
            f"vocabulary of {result.size} pieces, the first {old.vocab_size} as they were: "
            f"{result.path}",
            f"added: {' '.join(added[:_SHOWN])}{' ...' if len(added) > _SHOWN else ''}",
            f"next: albert-keras data build --corpus ... --tokenizer {result.path} --out records/, "
            "then albert-keras pretrain --data records/ --init-from ...",
        ],
        as_json,
    )


def _paragraphs(corpus, corpus_format):
    from data_pipeline.text.corpus import read_corpus

    for document in read_corpus(corpus, corpus_format):
        yield from document.paragraphs


app = typer.Typer(rich_markup_mode=None)
app.callback(invoke_without_command=True)(vocab)
app.command("extend")(extend)
