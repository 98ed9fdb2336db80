"""`albert-keras vocab` and `albert-keras vocab extend`."""

import enum
import math
from pathlib import Path

import typer

from albert_keras.cli.command import App, Output, command
from albert_keras.cli.output import shell
from albert_keras.cli.parameters import is_given

#: Number of added pieces to print, the most useful ones first.
_SHOWN = 20
#: Number of characters without a piece to print, the most frequent ones first.
_SHOWN_CHARACTERS = 10


#: The function that trains each kind.
_TRAINERS = {
    "unigram": "data_pipeline.tokenizers.vocabulary:train_vocabulary",
    "wordpiece": "data_pipeline.tokenizers.library_training:train_wordpiece",
    "bpe": "data_pipeline.tokenizers.library_training:train_byte_bpe",
}
Kind = enum.Enum("Kind", {name: name for name in _TRAINERS}, type=str)  # type: ignore[misc]


@command(_TRAINERS["unigram"])
def vocab(
    context: typer.Context,
    call,
    corpus: list[str] | None = None,
    out: Path | None = None,
    kind: Kind = Kind.unigram,
    size: int = 30_000,
    corpus_format: str = "auto",
):
    """Train a vocabulary on your text.

    Example:
      albert-keras vocab --corpus 'books/*.txt' --size 8000 --out tokenizer/
    The vocabulary of a BERT:
      albert-keras vocab --kind wordpiece --corpus 'books/*.txt' --size 8000 --out tokenizer/

    Options:
      corpus PATH: Text file, folder or 'glob' (required); may be repeated.
      out: Output folder (required).
      kind: Kind of vocabulary: unigram (SentencePiece) as in ALBERT, wordpiece as in BERT and
        DistilBERT, or bpe (byte-level) as in RoBERTa, which preserves case and accents.
      size: Number of pieces in the vocabulary.
      lower_case (yes, unless that confuses letters): Convert text to lower case.
      strip_accents (yes, unless letters need them): Remove accents: é becomes e.
      required_characters: Characters that get a piece even if the corpus lacks them, such as '§°';
        printable ASCII characters always get one.
      corpus_format
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
    train = call.to(_TRAINERS[kind.value], f"must not be used with --kind {kind.value}.")
    result = train(_paragraphs(corpus, corpus_format), out, size)
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
        *_cleanup_lines(result.path, kind),
        f"next: {_build_command(result, corpus, corpus_format)}",
    ]
    return Output(values, lines)


@command()
def extend(tokenizer: Path, corpus: list[str], add: int, out: Path, corpus_format: str = "auto"):
    """Add pieces for another kind of text; existing ids do not change.

    Example:
      albert-keras vocab extend --tokenizer runs/books --corpus 'medicine/*.txt' \\
          --add 2000 --out tokenizer-medicine/

    Options:
      tokenizer corpus
      add: Number of pieces to add.
      out: Output folder.
      corpus_format
    """
    from albert_keras.formats.vocabulary import load_tokenizer
    from data_pipeline.tokenizers.tokenization import Tokenizer
    from data_pipeline.tokenizers.vocabulary_extension import extend_vocabulary

    old = load_tokenizer(tokenizer)
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


def _build_command(vocabulary, corpus, corpus_format):
    """Returns the command that makes records of the same text, in the language of its letters."""
    from data_pipeline.text.sample import language_of

    words = [word for source in corpus for word in ("--corpus", source)]
    words += [] if corpus_format == "auto" else ["--format", corpus_format]
    language = language_of(corpus, corpus_format)
    words += [] if language == "en" else ["--language", language]
    words += ["--tokenizer", vocabulary.path, "--out", "records/"]
    return shell("albert-keras", "data", "build", *words)


def _cleanup_lines(path, kind):
    """Yields what the vocabulary does with case and accents, if it changes any text."""
    if kind is not Kind.bpe:
        from data_pipeline.tokenizers.tokenization import Tokenizer

        config = Tokenizer.load(path).config
        case = "lower-cased" if config.lower_case else "kept"
        yield f"case: {case}; accents: {'removed' if config.strip_accents else 'kept'}"


def _coverage_line(coverage):
    percent = math.floor(coverage.fraction * 1e6) / 1e4  # never 100 % if something is missing
    line = f"coverage: {percent:g} % of {coverage.characters:,} characters"
    shown = [f"{character!r} {count:,}" for character, count in coverage.uncovered.items()]
    if not shown:
        return line
    more = len(shown) - _SHOWN_CHARACTERS
    others = f" and {more} others" if more > 0 else ""
    unknown = f"{', '.join(shown[:_SHOWN_CHARACTERS])}{others}"
    return f"{line}; unknown: {unknown}; --required-characters gives them pieces"


def _paragraphs(corpus, corpus_format):
    from data_pipeline.text.corpus import read_with_progress

    for document in read_with_progress(corpus, corpus_format):
        yield from document.paragraphs


app = App(name="vocab")
app.callback(invoke_without_command=True)(vocab)
app.command()(extend)
