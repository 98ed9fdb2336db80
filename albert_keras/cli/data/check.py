"""`albert-keras data check`."""

import itertools
from typing import Annotated

from typer import Argument, Context, Option

from albert_keras.cli.arguments import check_task_files, read_values
from albert_keras.cli.command import Output, command
from albert_keras.cli.options import Assignments, CorpusFormat, TokenizerPath, refuse
from albert_keras.report import Finding, bytes_text, count_of, percent
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from data_pipeline.settings import option, options_of

#: Options that only a corpus has.
_OF_A_CORPUS = ("corpus_format", "language", "splitter", "copies", "sample_mb", "heldout")
_USUAL_LENGTH = 512

#: A line beyond these limits is a warning.
_MOST_REPEATED, _MOST_ONE_SENTENCE, _MOST_UNKNOWN, _MOST_TRUNCATED = 0.01, 0.1, 0.005, 0.05
_MOST_PIECES_PER_WORD = 2.5
_PROBLEMS_SHOWN, _UNKNOWN_SHOWN, _LEAST_NAMED = 10, 5, 0.005
_PAIRS_SHOWN, _FILES_SHOWN = 5, 5
_MOST_LEAKED = 0.05


class ExampleOptions(TaskConfig):
    """The options of `data check`: the options of a task, but none is required."""

    name: str | None = option(
        None,
        "Task whose examples are checked: a GLUE task, squad1, squad2 or race; or classification, "
        "pair, regression, tagging or similarity for your own files.",
        keyword="task",
    )
    skip_bad_rows: bool = option(
        False, "Skip what cannot be used of the files; --json lists all of it."
    )
    max_seq_length: int | None = option(
        None,
        "Tokens per record or per row of a task.",
        default_text="512; with --task the default of finetune",
    )


@command(config=ExampleOptions, shown="max_seq_length task data_dir train dev text pair label")
def check(
    context: Context,
    *,
    corpus: Annotated[list[str] | None, Argument()] = None,
    tokenizer: TokenizerPath = None,
    flags,
    corpus_format: CorpusFormat = "auto",
    language: Annotated[str | None, Option(show_default="detected")] = None,
    splitter: str = "sentencex",
    copies: int = 1,
    sample_mb: float = 50,
    heldout: Annotated[list[str] | None, Option(metavar="PATH")] = None,
    assignments: Assignments = None,
):
    """Check a corpus before `data build`, or the examples of a task before `finetune`.

    A corpus is checked for problems, and its records are estimated. With --task, the report shows
    labels, lengths, repeated and contradictory examples, and unknown tokens; examples are given as
    to `finetune`.

    Examples:
      albert-keras data check 'books/*.txt' --tokenizer tokenizer/ --max-seq-length 128
      albert-keras data check --task classification --train mail.csv --text body --label folder
      albert-keras data check --task sst-2 --data-dir glue/ --tokenizer runs/books

    Args:
      corpus: Text files, folders or 'globs' of a corpus; not with --task.
      language: Corpus: language code for sentence splitting.
      splitter: Corpus: sentence splitter: sentencex or line.
      copies: Corpus: passes over it.
      sample_mb: Corpus: megabytes to read from a larger corpus.
      heldout: Corpus: held-out text, which must not repeat it.
    """
    if bool(corpus) == ("task" in flags):
        raise InputError(
            "Either the files of a corpus or `--task` must be given, to check a corpus or the "
            f"examples of a task. Received: {'both' if corpus else 'neither'}."
        )
    if corpus:
        others = options_of(ExampleOptions).keys() - {"max_seq_length"}
        others |= {"assignments"}
        refuse(context, others, "is an option for the examples of a task; add `--task`.")
    else:
        refuse(context, _OF_A_CORPUS, "is an option for a corpus, not for examples of a task.")
        return _check_task(flags, tokenizer, assignments)
    from albert_keras.formats.vocabulary import load_tokenizer
    from data_pipeline.config import PretrainingDataConfig
    from data_pipeline.reports.corpus_check import check_corpus
    from data_pipeline.text.sample import language_of

    detected = language_of(corpus, corpus_format)
    config = PretrainingDataConfig(
        max_seq_length=flags.get("max_seq_length", _USUAL_LENGTH),
        copies=copies,
        language=language or detected or "en",
        splitter=splitter,
    )
    loaded = load_tokenizer(tokenizer) if tokenizer else None
    report = check_corpus(corpus, loaded, config, corpus_format, sample_mb, heldout)
    findings = list(_findings(report, config, detected, loaded))
    warnings = [one.warning for one in findings if one.warning]
    lines = [*_summary(report), *(line for one in findings for line in one.lines())]
    values = report._asdict() | {"warnings": warnings}
    return Output(values, [*lines, count_of(len(warnings), "warning")], _refusal(report))


def _check_task(flags, tokenizer, assignments):
    """Checks the examples of a task; `flags` are the values by the keywords of ExampleOptions."""
    paths = {keyword: option.path for keyword, option in options_of(ExampleOptions).items()}
    values = read_values(None, assignments, kind=None)
    if others := values.keys() - {"task"}:
        raise InputError(
            f"`--set` must have settings of the task, such as task.labels. Received: {min(others)}."
        )
    given = {paths[keyword][0]: value for keyword, value in flags.items()}
    config = TaskConfig(**values.get("task", {}) | given)
    check_task_files(config)
    from albert_keras.formats.vocabulary import load_tokenizer
    from albert_keras.tasks.example_report import report_task
    from albert_keras.tasks.kinds import build_task

    task = build_task(config)
    reports = report_task(task, load_tokenizer(tokenizer) if tokenizer else None)
    skipped = [row for rows in task.skipped_rows.values() for row in rows]
    length = task.max_seq_length
    lines = [f"{config.name}: rows of at most {length} tokens, scored by {task.metric}"]
    for split, one in reports.items():
        lines.append(f"{split}: {count_of(one.examples, 'example')}")
        lines += [line for finding in one.findings for line in finding.lines()]
    warnings = [f"{split}: {text}" for split, one in reports.items() for text in one.warnings]
    if tokenizer is None:
        text = "give --tokenizer for lengths in tokens and unknown tokens"
        lines += Finding(None, "tokens", text).lines()
    if skipped:
        warnings.append(f"skipped rows: {count_of(len(skipped), 'row')} cannot be used")
        text = f"{len(skipped):,}; --json lists all of them"
        lines += Finding(False, "skipped rows", text).lines()
    values = {"task": config.name, "splits": reports}
    values |= {"skipped_rows": skipped, "warnings": warnings}
    return Output(values, [*lines, count_of(len(warnings), "warning")])


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


def _findings(report, config, detected, tokenizer):
    from data_pipeline.text.letters import language_fault

    count, estimate = report.counts, report.estimate
    yield _files(report)
    if lines := report.sentence_files:
        text = f"{count_of(len(lines), 'file')} with one sentence per line and blank lines between "
        text += f"documents, such as {lines[0]}, read as prose: give --format sentences"
        yield Finding(False, "format", text)
    if not count["documents"]:
        return

    def share(name, total):
        return count[name] / max(count[total], 1)

    repeated = max(report.repeated_documents, report.repeated_text)
    text = f"{percent(report.repeated_documents)} of the documents, "
    text += f"{percent(report.repeated_text)} of the text, apart from numbers and punctuation"
    yield Finding(repeated <= _MOST_REPEATED, "repeated", text)
    yield from _near_duplicates(report.near_duplicates)
    if (leaked := report.held_out_share) is not None:
        text = f"{percent(leaked)} of its runs of 8 words are in the corpus"
        yield Finding(leaked <= _MOST_LEAKED, "held-out text", text)
    yield from itertools.starmap(Finding, report.signs)
    lone = share("one_sentence_documents", "documents")
    text = f"{percent(lone)} of the documents, which have no sentence order; "
    text += f"{count['empty_documents']} are empty"
    yield Finding(lone <= _MOST_ONE_SENTENCE, "one sentence only", text)
    if estimate:
        truncated, most = share("long_sentences", "sentences"), config.max_num_tokens
        text = f"{percent(truncated)} of the sentences have more than {most} tokens"
        yield Finding(truncated <= _MOST_TRUNCATED, "truncated", text)
        per_word = share("pieces", "words")
        is_good = per_word <= _MOST_PIECES_PER_WORD
        hint = "" if is_good else ": wrong vocabulary or language?"
        yield Finding(is_good, "tokens per word", f"{per_word:.2f}{hint}")
        unknown = share("unknown_pieces", "pieces")
        text = percent(unknown, 2)
        if shown := report.unknown_characters[:_UNKNOWN_SHOWN]:
            named = ", ".join(f'"{character}" {seen:,}' for character, seen in shown)
            text += f", most often {named}"
        if unknown > _MOST_UNKNOWN:
            text += f". {tokenizer.remedy(report.unknown_characters)}"
        yield Finding(unknown <= _MOST_UNKNOWN, "unknown tokens", text)
    scripts = {name: part for name, part in report.scripts.items() if part >= _LEAST_NAMED}
    named = ", ".join(f"{name} {percent(part)}" for name, part in scripts.items()) or "none"
    _, reason = language_fault(report.scripts, detected, config.language)
    needed = (
        "" if config.language == "en" else f"`data build` requires --language {config.language}"
    )
    hint = f": {reason or needed}" if reason or needed else ""
    yield Finding(not reason, "letters", f"{named}{hint}")
    text = "give --tokenizer for an estimate of tokens and records"
    if estimate:
        text = (
            f"about {estimate.records:,} records of {config.max_seq_length} tokens, "
            f"{bytes_text(estimate.bytes)}, with {percent(estimate.padding)} padding and "
            f"{percent(estimate.kept_text)} of the text"
        )
    yield Finding(None, "build", text)


def _files(report):
    refused = sum(bool(problem.file) for problem in report.problems)
    found = "all are UTF-8" if report.share_read == 1 else "the sample is UTF-8"
    found = [f"{count_of(refused, 'file')} cannot be read, see below" if refused else found]
    if empty := report.files_without_text:
        named = ", ".join(empty[:_FILES_SHOWN]) + (", ..." if len(empty) > _FILES_SHOWN else "")
        found.append(f"{len(empty):,} without text: {named}")
    return Finding(not refused and not empty, "files", ", ".join(found))


def _near_duplicates(pairs):
    name = "near-duplicates"
    if not pairs:
        yield Finding(True, name, "no two texts share a fifth of their runs of 8 words")
    for pair in pairs[:_PAIRS_SHOWN]:
        leak = ": held-out text must not be in the corpus" if pair.held_out else ""
        where = "in it twice" if pair.other == pair.name else f"in {pair.other}"
        shared = f"{percent(pair.share)} of its runs of 8 words are {where}"
        yield Finding(False, name, f"{pair.name}: {shared}{leak}")
    if (more := len(pairs) - _PAIRS_SHOWN) > 0:
        yield Finding(False, name, f"{more:,} more pairs, see --json")
