"""`albert-keras data check`."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start

_GOOD, _WARNING, _PLAIN = "✔", "⚠", " "
_ASCII = {"✔": "ok", "⚠": "!!", "→": "->", "…": "..."}

#: Beyond these a line is a warning.
_MOST_REPEATED, _MOST_ONE_SENTENCE, _MOST_UNKNOWN, _MOST_TRUNCATED = 0.01, 0.1, 0.005, 0.05
_MOST_PIECES_PER_WORD, _LEAST_IN_SCRIPT = 2.5, 0.5
_PROBLEMS_SHOWN, _UNKNOWN_SHOWN, _SEGMENT_CHARS, _LEAST_NAMED = 10, 5, 90, 0.005


def check(
    corpus: Annotated[
        list[str],
        typer.Argument(help="Text files, folders or 'globs'.", show_default=False),
    ],
    tokenizer: Annotated[
        Path | None,
        typer.Option(
            help="Folder made by `vocab`, a .model file or a vocab.txt.", show_default=False
        ),
    ] = None,
    corpus_format: options.CorpusFormat = "auto",
    language: Annotated[str, typer.Option(help="Code, for sentence splitting.")] = "en",
    splitter: Annotated[
        str, typer.Option(help="sentencex, tensorflow-text, line or none.")
    ] = "sentencex",
    max_seq_length: Annotated[int, typer.Option(help="Pieces per record.")] = 512,
    copies: Annotated[int, typer.Option(help="Passes over the corpus.")] = 1,
    sample_mb: Annotated[float, typer.Option(help="Megabytes to read of a larger corpus.")] = 50,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png", help="Picture to draw.", show_default=False),
    ] = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Look at a corpus before building records: what is in it, what is wrong, what it will make.

    \b
    Example:
      albert-keras data check 'books/*.txt' --tokenizer tokenizer/ --max-seq-length 128
    """
    start(verbose, debug)
    from data_pipeline.config import PretrainingDataConfig
    from data_pipeline.errors import InputError
    from data_pipeline.reports.corpus_check import check_corpus
    from data_pipeline.tokenizers.tokenization import Tokenizer

    config = PretrainingDataConfig(
        max_seq_length=max_seq_length, copies=copies, language=language, splitter=splitter
    )
    report = check_corpus(
        corpus,
        Tokenizer.load(tokenizer) if tokenizer else None,
        config,
        corpus_format,
        sample_mb=sample_mb,
        figure=figure,
    )
    findings = list(_findings(report, config))
    warnings = [text for mark, text in findings if mark == _WARNING]
    lines = [
        *_summary(report),
        *(f"{mark} {text}" for mark, text in findings),
        *_outlook(report, config, figure),
        _number(len(warnings), "warning"),
    ]
    show(_plain(report) | {"warnings": warnings}, map(_printable, lines), as_json)
    if report.problems:
        reasons = [problem.reason for problem in report.problems]
        more = len(reasons) - _PROBLEMS_SHOWN
        said = [f"  {reason}" for reason in reasons[:_PROBLEMS_SHOWN]]
        said += [f"  ... and {more} more, see --json"] if more > 0 else []
        raise InputError(_printable("\n".join([f"{_refusal(report)}:", *said])))


def _refusal(report):
    if not report.problems[0].file:
        return "a build would refuse this corpus"
    count, files = len(report.problems), report.files
    return f"a build would refuse {count} of {files} file{'' if files == 1 else 's'}"


def _summary(report):
    formats = ", ".join(f"{count} {name}" for name, count in report.formats.items())
    count = report.counts
    part = "" if report.share_read == 1 else f"; a sample of {report.share_read:.1%} was read"
    yield (
        f"{_number(report.files, 'file')}, {_size(report.bytes)} ({formats or 'none'})"
        f"{part}, in {report.seconds:.0f} s"
    )
    names = ["document", "paragraph", "sentence", "word"]
    named = [_number(count[f"{name}s"], name) for name in names]
    if report.unit == "pieces":
        named.append(_number(count["pieces"], "piece"))
    yield f"  {', '.join(named)}"
    if not count["documents"]:
        return
    for name, lengths in (
        ("documents", report.document_lengths),
        ("sentences", report.sentence_lengths),
    ):
        shown = ", ".join(f"{quantile} {length:,}" for quantile, length in lengths.items())
        yield f"  length of {name}  {shown} {report.unit}"


def _findings(report, config):
    """Yields (mark, text) for everything that may be good or bad."""
    from data_pipeline.reports.corpus_statistics import expected_scripts

    count = report.counts
    yield _encodings(report)
    if not (documents := count["documents"]):
        return
    repeated = report.repeated_documents / documents
    yield (
        _mark(max(repeated, report.repeated_text) <= _MOST_REPEATED),
        f"repeated           {repeated:.1%} of the documents ({report.repeated_text:.1%} of the "
        f"text); {report.repeated_paragraphs_text:.1%} of the text in repeated paragraphs",
    )
    lone = count["one_sentence_documents"] / documents
    yield (
        _mark(lone <= _MOST_ONE_SENTENCE),
        f"one sentence only  {lone:.1%} of the documents, which have no order to learn from; "
        f"{count['empty_documents']} are empty",
    )
    if report.unit == "pieces":
        yield from _piece_findings(count, report.unknown_characters, config)
    shares = {name: share for name, share in report.scripts.items() if share >= _LEAST_NAMED}
    named = ", ".join(f"{name} {share:.1%}" for name, share in shares.items()) or "none"
    expected = sum(report.scripts.get(script, 0) for script in expected_scripts(config.language))
    right = not shares or expected >= _LEAST_IN_SCRIPT
    hint = f": not those of --language {config.language}"
    yield _mark(right), f"letters            {named}{'' if right else hint}"
    odd = [f"{name} {seen}" for name, seen in report.odd_characters.items() if seen]
    yield _PLAIN, f"odd characters     {', '.join(odd) or 'none'}"
    said = ", ".join(f'"{name}" {seen}' for name, seen in report.literals.items())
    yield _PLAIN, f"special names      {f'{said}: kept as plain text' if said else 'none'}"


def _encodings(report):
    refused = sum(bool(problem.file) for problem in report.problems)
    said = [f"{_number(refused, 'file')} cannot be read, see below" if refused else "all are UTF-8"]
    if report.share_read < 1 and not refused:
        said = ["all that was read is UTF-8"]
    notes = {
        "with a byte order mark": report.files_with_bom,
        "with CRLF": report.files_with_crlf,
        "without text": report.files_without_text,
    }
    said += [f"{seen:,} {note}" for note, seen in notes.items() if seen]
    return _mark(not refused), f"files              {', '.join(said)}"


def _piece_findings(count, unknown_characters, config):
    truncated = count["long_sentences"] / max(count["sentences"], 1)
    yield (
        _mark(truncated <= _MOST_TRUNCATED),
        f"truncated          {truncated:.1%} of the sentences have more than "
        f"{config.max_num_tokens} pieces",
    )
    per_word = count["pieces"] / max(count["words"], 1)
    right = per_word <= _MOST_PIECES_PER_WORD
    hint = ": wrong vocabulary or language?"
    yield _mark(right), f"pieces per word    {per_word:.2f}{'' if right else hint}"
    unknown = count["unknown_pieces"] / max(count["pieces"], 1)
    shown = unknown_characters[:_UNKNOWN_SHOWN]
    named = ", ".join(f'"{character}" {seen:,}' for character, seen in shown)
    yield (
        _mark(unknown <= _MOST_UNKNOWN),
        f"unknown pieces     {unknown:.2%}{f', most often {named}' if named else ''}",
    )


def _outlook(report, config, figure):
    estimate = report.estimate
    if not report.counts["documents"]:
        return
    if estimate is None:
        yield "  a build            give --tokenizer to learn about pieces and records"
    else:
        seconds = round(estimate.seconds)
        yield (
            f"  a build            about {estimate.records:,} records of "
            f"{config.max_seq_length} pieces, {_size(estimate.bytes)} in "
            f"{_number(estimate.shards, 'shard')}, "
            f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d} with "
            f"{_number(estimate.workers, 'process')}"
        )
    for example in report.examples:
        segments = " [SEP] ".join(map(_shortened, example.segments))
        yield f"  {example.order:<17}  [CLS] {segments} [SEP]"
    if figure is not None:
        yield f"picture: {figure}"


def _shortened(text):
    """Leaves out the middle of a long text, at spaces."""
    if len(text) <= _SEGMENT_CHARS:
        return text
    half = _SEGMENT_CHARS // 2
    head = text[:half].rpartition(" ")[0] or text[:half]
    tail = text[-half:].partition(" ")[2] or text[-half:]
    return f"{head} … {tail}"


def _size(count):
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:.1f} kB"


def _mark(is_good):
    return _GOOD if is_good else _WARNING


def _number(count, name):
    plural = name if count == 1 else f"{name}es" if name.endswith("s") else f"{name}s"
    return f"{count:,} {plural}"


def _printable(line):
    """Puts ASCII for what an output that is not UTF-8 could not show, and typer would choke on."""
    if (sys.stdout.encoding or "ascii").lower().replace("-", "").startswith("utf"):
        return line
    for sign, plain in _ASCII.items():
        line = line.replace(sign, plain)
    return line.encode("ascii", "backslashreplace").decode()


def _plain(value):
    """Turns named tuples into dicts, so that JSON has their names."""
    if hasattr(value, "_asdict"):
        return {name: _plain(part) for name, part in value._asdict().items()}
    return [_plain(part) for part in value] if isinstance(value, list) else value
