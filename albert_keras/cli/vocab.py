"""`albert-keras vocab` and `albert-keras vocab extend`."""

import math
from pathlib import Path
from typing import Annotated, Literal

from typer import Context, Option

from albert_keras.cli.command import EPILOG, App, Output, command
from albert_keras.cli.interruption import ending_at_once
from albert_keras.cli.options import Corpus, CorpusFormat, TokenizerPath, is_given, refuse
from albert_keras.cli.output import shell

#: Number of added pieces to print, the most useful ones first.
_SHOWN = 20
#: Number of characters without a piece to print, the most frequent ones first.
_SHOWN_CHARACTERS = 10

#: What a vocabulary of bytes does not do.
_OF_TEXT = ("language", "lower_case", "strip_accents")


@command()
def vocab(
    context: Context,
    given,
    corpus: Annotated[list[str] | None, Option(metavar="PATH")] = None,
    out: Path | None = None,
    kind: Literal["unigram", "wordpiece", "bpe"] = "unigram",
    size: int = 30000,
    language: Annotated[str | None, Option(metavar="CODE", show_default="en")] = None,
    lower_case: Annotated[bool | None, Option(show_default="yes, but for az and tr")] = None,
    strip_accents: Annotated[
        bool | None,
        Option("--strip-accents/--keep-accents", show_default="removed for English alone"),
    ] = None,
    corpus_format: CorpusFormat = "auto",
):
    """Train a vocabulary on your text.

    Example:
      albert-keras vocab --corpus 'books/*.txt' --size 8000 --out tokenizer/
    The vocabulary of a BERT:
      albert-keras vocab --kind wordpiece --corpus 'books/*.txt' --size 8000 --out tokenizer/

    Args:
      corpus: Text file, folder or 'glob' (required); may be repeated.
      out: Output folder (required).
      kind: Kind of vocabulary: unigram (SentencePiece) as in ALBERT, wordpiece as in BERT and
        DistilBERT, or bpe (byte-level) as in RoBERTa, which preserves case and accents.
      size: Number of pieces in the vocabulary.
      language: Language code of the text; required if more than one letter in a thousand has an
        accent or is not Latin.
      lower_case: Convert text to lower case.
      strip_accents: Remove accents, é becomes e, or keep them.
    """
    if context.invoked_subcommand is not None:
        if any(is_given(context, name) for name in context.params):
            context.fail(f"Options must follow `{context.invoked_subcommand}`.")
        return None
    from data_pipeline.text.text_files import find_files

    for name, value in (("--corpus", corpus), ("--out", out)):
        if not value:
            context.fail(f"Missing option '{name}'.")
    find_files(corpus)  # before the trainer is loaded
    of_text = {name: given[name] for name in _OF_TEXT if name in given}
    if kind == "bpe":
        refuse(context, _OF_TEXT, "must not be used with --kind bpe.")
    from data_pipeline.tokenizers.library_training import train_byte_bpe, train_wordpiece
    from data_pipeline.tokenizers.vocabulary import train_vocabulary

    trainers = {"unigram": train_vocabulary, "wordpiece": train_wordpiece, "bpe": train_byte_bpe}
    with ending_at_once():
        result = trainers[kind](_paragraphs(corpus, corpus_format), out, size, **of_text)
    coverage = result.coverage
    values = {
        "path": result.path,
        "size": result.size,
        "sha256": result.sha256,
        "characters": coverage.characters,
        "coverage": coverage.fraction,
        "uncovered": coverage.uncovered,
    }
    lines = [
        f"vocabulary of {result.size} pieces: {result.path}",
        _coverage_line(coverage),
        f"next: {_build_command(result, corpus, corpus_format, language)}",
    ]
    return Output(values, lines)


@command()
def extend(
    tokenizer: TokenizerPath,
    corpus: Corpus,
    add: Annotated[int, Option()],
    out: Annotated[Path, Option()],
    corpus_format: CorpusFormat = "auto",
):
    """Add pieces for another kind of text; existing ids do not change.

    Example:
      albert-keras vocab extend --tokenizer runs/books --corpus 'medicine/*.txt' \\
          --add 2000 --out tokenizer-medicine/

    Args:
      add: Number of pieces to add.
      out: Output folder.
    """
    from albert_keras.formats.vocabulary import load_tokenizer
    from data_pipeline.tokenizers.tokenization import Tokenizer
    from data_pipeline.tokenizers.vocabulary_extension import extend_vocabulary

    old = load_tokenizer(tokenizer)
    with ending_at_once():
        result = extend_vocabulary(old, _paragraphs(corpus, corpus_format), out, add)
    new = Tokenizer.load(result.path)
    added = [new.piece_of(id) for id in range(old.vocab_size, new.vocab_size)]
    values = {"path": result.path, "size": result.size, "sha256": result.sha256, "added": added}
    lines = [
        f"vocabulary of {result.size} pieces, the first {old.vocab_size} unchanged: {result.path}",
        f"added: {' '.join(added[:_SHOWN])}{' ...' if len(added) > _SHOWN else ''}",
        f"next: {_build_command(result, corpus, corpus_format)}, then "
        "albert-keras pretrain --data records/ --init-from ... --out runs/...",
    ]
    return Output(values, lines)


def _build_command(vocabulary, corpus, corpus_format, language=None):
    """Returns the command that makes records of the same text."""
    words = [word for source in corpus for word in ("--corpus", source)]
    words += [] if corpus_format == "auto" else ["--format", corpus_format]
    words += [] if language is None else ["--language", language]
    words += ["--tokenizer", vocabulary.path, "--out", "records/"]
    return shell("albert-keras", "data", "build", *words)


def _coverage_line(coverage):
    percent = math.floor(coverage.fraction * 1e6) / 1e4  # never 100 % if something is missing
    line = f"coverage: {percent:g} % of {coverage.characters:,} characters"
    shown = [f"{character!r} {count:,}" for character, count in coverage.uncovered.items()]
    if not shown:
        return line
    more = len(shown) - _SHOWN_CHARACTERS
    others = f" and {more} others" if more > 0 else ""
    unknown = f"{', '.join(shown[:_SHOWN_CHARACTERS])}{others}"
    return f"{line}; unknown: {unknown}"


def _paragraphs(corpus, corpus_format):
    from data_pipeline.text.corpus import read_with_progress

    for document in read_with_progress(corpus, corpus_format):
        yield from document.paragraphs


app = App(name="vocab", epilog=EPILOG)
app.callback(invoke_without_command=True)(vocab)
app.command()(extend)
