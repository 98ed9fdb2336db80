"""`albert-keras data check`."""

from pathlib import Path

import typer

from albert_keras.cli.command import Output, command
from albert_keras.cli.data.check_task import ExampleOptions, check_task
from albert_keras.cli.output import plain
from albert_keras.cli.parameters import refuse
from albert_keras.report import bytes_text, count_of, percent
from data_pipeline.errors import InputError
from data_pipeline.settings import options_of

_GOOD, _WARNING = "✔", "⚠"
#: Options that only a corpus has.
_OF_A_CORPUS = ("corpus_format", "language", "splitter", "copies", "sample_mb", "heldout")
_USUAL_LENGTH = 512

#: A line beyond these limits is a warning.
_MOST_REPEATED, _MOST_ONE_SENTENCE, _MOST_UNKNOWN, _MOST_TRUNCATED = 0.01, 0.1, 0.005, 0.05
_MOST_PIECES_PER_WORD, _LEAST_IN_SCRIPT = 2.5, 0.5
_PROBLEMS_SHOWN, _UNKNOWN_SHOWN, _LEAST_NAMED = 10, 5, 0.005
_PAIRS_SHOWN, _FILES_SHOWN, _MARKUP_SHOWN, _MOST_MARKUP = 5, 5, 3, 0.01


@command(config=ExampleOptions)
def check(
    context: typer.Context,
    corpus: list[str] | None = None,
    *,
    flags,
    tokenizer: Path | None = None,
    corpus_format: str = "auto",
    language: str = "en",
    splitter: str = "sentencex",
    copies: int = 1,
    sample_mb: float = 50,
    heldout: list[str] | None = None,
):
    """Check a corpus before `data build`, or the examples of a task before `finetune`.

    A corpus is checked for problems, and its records are estimated. With --task, the report shows
    labels, lengths, repeated and contradictory examples, and unknown tokens; examples are given as
    to `finetune`.

    Examples:
      albert-keras data check 'books/*.txt' --tokenizer tokenizer/ --max-seq-length 128
      albert-keras data check --task classification --train mail.csv --text body --label folder
      albert-keras data check --task sst-2 --data-dir glue/ --tokenizer runs/books

    Options:
      corpus <CORPUS>: Text files, folders or 'globs' of a corpus; not with --task.
      tokenizer max_seq_length
      task data_dir train dev text pair label
      corpus_format
      language: Corpus: language code for sentence splitting.
      splitter: Corpus: sentence splitter: sentencex or line.
      copies: Corpus: passes over it.
      sample_mb: Corpus: megabytes to read from a larger corpus.
      heldout PATH: Corpus: held-out text, which must not repeat it.
    """
    if bool(corpus) == ("task" in flags):
        raise InputError(
            "Either the files of a corpus or `--task` must be given, to check a corpus or the "
            f"examples of a task. Received: {'both' if corpus else 'neither'}."
        )
    if corpus:
        others = options_of(ExampleOptions).keys() - {"max_seq_length"}
        refuse(context, others, "is an option for the examples of a task; add `--task`.")
    else:
        refuse(context, _OF_A_CORPUS, "is an option for a corpus, not for examples of a task.")
        return check_task(flags, tokenizer)
    from albert_keras.formats.open_model import load_tokenizer
    from data_pipeline.config import PretrainingDataConfig
    from data_pipeline.reports.corpus_check import check_corpus

    config = PretrainingDataConfig(
        max_seq_length=flags.get("max_seq_length", _USUAL_LENGTH),
        copies=copies,
        language=language,
        splitter=splitter,
    )
    loaded = load_tokenizer(tokenizer) if tokenizer else None
    report = check_corpus(corpus, loaded, config, corpus_format, sample_mb, heldout)
    findings = list(_findings(report, config))
    warnings = [text for mark, text in findings if mark == _WARNING]
    lines = [
        *_summary(report),
        *(f"{mark} {text}" for mark, text in findings),
        *_outlook(report, config),
        count_of(len(warnings), "warning"),
    ]
    values = plain(report) | {"warnings": warnings}
    return Output(values, lines, _refusal(report))


def _refusal(report):
    """Returns the error that a build would raise, or None."""
    if not report.problems:
        return None
    reasons = [problem.reason for problem in report.problems]
    summary = "A build would refuse this corpus"
    if report.problems[0].file:
        summary = f"A build would refuse {len(reasons)} of {count_of(report.files, 'file')}"
    lines = [f"{summary}:", *(f"  {reason}" for reason in reasons[:_PROBLEMS_SHOWN])]
    if (more := len(reasons) - _PROBLEMS_SHOWN) > 0:
        lines.append(f"  ... and {more} more, see --json")
    return InputError("\n".join(lines))


def _summary(report):
    formats = ", ".join(f"{count} {name}" for name, count in report.formats.items())
    count = report.counts
    part = "" if report.share_read == 1 else f"; read a sample of {percent(report.share_read)}"
    yield (
        f"{count_of(report.files, 'file')}, {bytes_text(report.bytes)} ({formats or 'none'}){part}"
    )
    names = ["document", "paragraph", "sentence", "word"]
    named = [count_of(count[f"{name}s"], name) for name in names]
    if report.estimate:
        named.append(count_of(count["pieces"], "token"))
    yield f"  {', '.join(named)}"
    if not count["documents"]:
        return
    lengths = report.sentence_lengths.items()
    shown = ", ".join(f"{quantile} {length:,}" for quantile, length in lengths)
    yield f"  length of sentences  {shown} {'tokens' if report.estimate else 'characters'}"


def _findings(report, config):
    """Yields (mark, text) for each property of the corpus."""
    from data_pipeline.text.letters import expected_scripts

    count = report.counts
    yield _encodings(report)
    if not (documents := count["documents"]):
        return
    repeated = report.repeated_documents
    yield (
        _mark(max(repeated, report.repeated_text) <= _MOST_REPEATED),
        f"repeated           {percent(repeated)} of the documents, "
        f"{percent(report.repeated_text)} of the text",
    )
    yield from _near_duplicates(report.near_duplicates)
    markup = count["markup_paragraphs"] / max(count["paragraphs"], 1)
    shown = f", such as {'; '.join(report.markup[:_MARKUP_SHOWN])}" if report.markup else ""
    yield (
        _mark(markup <= _MOST_MARKUP),
        f"markup             {percent(markup)} of the paragraphs look like it{shown}",
    )
    lone = count["one_sentence_documents"] / documents
    yield (
        _mark(lone <= _MOST_ONE_SENTENCE),
        f"one sentence only  {percent(lone)} of the documents, which have no sentence order; "
        f"{count['empty_documents']} are empty",
    )
    if report.estimate:
        yield from _piece_findings(count, report.unknown_characters, config)
    scripts = {name: part for name, part in report.scripts.items() if part >= _LEAST_NAMED}
    named = ", ".join(f"{name} {percent(part)}" for name, part in scripts.items()) or "none"
    expected = sum(report.scripts.get(script, 0) for script in expected_scripts(config.language))
    right = not scripts or expected >= _LEAST_IN_SCRIPT
    hint = f": not the script of --language {config.language}"
    yield _mark(right), f"letters            {named}{'' if right else hint}"


def _encodings(report):
    refused = sum(bool(problem.file) for problem in report.problems)
    found = "all are UTF-8" if report.share_read == 1 else "the sample is UTF-8"
    found = [f"{count_of(refused, 'file')} cannot be read, see below" if refused else found]
    if empty := report.files_without_text:
        named = ", ".join(empty[:_FILES_SHOWN]) + (", ..." if len(empty) > _FILES_SHOWN else "")
        found.append(f"{len(empty):,} without text: {named}")
    return _mark(not refused and not empty), f"files              {', '.join(found)}"


def _near_duplicates(pairs):
    """Yields the lines about texts that share many runs of 8 words."""
    if not pairs:
        yield _GOOD, "near-duplicates    no two texts share a fifth of their runs of 8 words"
    for pair in pairs[:_PAIRS_SHOWN]:
        leak = ": held-out text must not be in the corpus" if pair.held_out else ""
        shared = f"{percent(pair.share)} of its runs of 8 words are in {pair.other}"
        yield _WARNING, f"near-duplicates    {pair.name}: {shared}{leak}"
    if (more := len(pairs) - _PAIRS_SHOWN) > 0:
        yield _WARNING, f"near-duplicates    {more:,} more pairs, see --json"


def _piece_findings(count, unknown_characters, config):
    truncated = count["long_sentences"] / max(count["sentences"], 1)
    yield (
        _mark(truncated <= _MOST_TRUNCATED),
        f"truncated          {percent(truncated)} of the sentences have more than "
        f"{config.max_num_tokens} tokens",
    )
    per_word = count["pieces"] / max(count["words"], 1)
    right = per_word <= _MOST_PIECES_PER_WORD
    hint = ": wrong vocabulary or language?"
    yield _mark(right), f"tokens per word    {per_word:.2f}{'' if right else hint}"
    unknown = count["unknown_pieces"] / max(count["pieces"], 1)
    shown = unknown_characters[:_UNKNOWN_SHOWN]
    named = ", ".join(f'"{character}" {seen:,}' for character, seen in shown)
    yield (
        _mark(unknown <= _MOST_UNKNOWN),
        f"unknown tokens     {percent(unknown, 2)}{f', most often {named}' if named else ''}",
    )


def _outlook(report, config):
    estimate = report.estimate
    if not report.counts["documents"]:
        return
    if estimate is None:
        yield "  build              give --tokenizer for an estimate of tokens and records"
    else:
        yield (
            f"  build              about {estimate.records:,} records of "
            f"{config.max_seq_length} tokens, {bytes_text(estimate.bytes)}, with "
            f"{percent(estimate.padding)} padding and {percent(estimate.kept_text)} of the text"
        )


def _mark(is_good):
    return _GOOD if is_good else _WARNING
