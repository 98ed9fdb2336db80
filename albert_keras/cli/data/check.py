"""`albert-keras data check`."""

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
_OF_A_CORPUS = ("corpus_format", "language", "splitter", "heldout")

#: Examples in a report.
_PROBLEMS_SHOWN = 10
_PAIRS_SHOWN = 5


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
        "Tokens per row of a task.",
        default_text="the default of finetune",
    )


@command(config=ExampleOptions, shown="max_seq_length task data_dir train dev text pair label")
def check(
    context: Context,
    *,
    corpus: Annotated[list[str] | None, Argument()] = None,
    tokenizer: TokenizerPath = None,
    flags,
    corpus_format: CorpusFormat = "auto",
    language: Annotated[str | None, Option(show_default="en")] = None,
    splitter: str = "sentencex",
    heldout: Annotated[list[str] | None, Option(metavar="PATH")] = None,
    assignments: Assignments = None,
):
    """Check a corpus before `data build`, or the examples of a task before `finetune`.

    The report on a corpus has counts, lengths, repeated documents and near-duplicates of held-out
    text, and the files that a build would refuse. With --task, it has labels, lengths, repeated and
    contradictory examples, and unknown tokens; examples are given as to `finetune`.

    Examples:
      albert-keras data check 'books/*.txt' --tokenizer tokenizer/
      albert-keras data check --task classification --train mail.csv --text body --label folder
      albert-keras data check --task sst-2 --data-dir glue/ --tokenizer runs/books

    Args:
      corpus: Text files, folders or 'globs' of a corpus; not with --task.
      language: Corpus: language code for sentence splitting, see `data build`.
      splitter: Corpus: sentence splitter: sentencex or line.
      heldout: Corpus: held-out text, which must not repeat it.
    """
    if bool(corpus) == ("task" in flags):
        raise InputError(
            "Either the files of a corpus or `--task` must be given, to check a corpus or the "
            f"examples of a task. Received: {'both' if corpus else 'neither'}."
        )
    if corpus:
        others = options_of(ExampleOptions).keys() | {"assignments"}
        refuse(context, others, "is an option for the examples of a task; add `--task`.")
    else:
        refuse(context, _OF_A_CORPUS, "is an option for a corpus, not for examples of a task.")
        return _check_task(flags, tokenizer, assignments)
    from albert_keras.formats.vocabulary import load_tokenizer
    from data_pipeline.config import PretrainingDataConfig
    from data_pipeline.reports.corpus_check import check_corpus

    given = {} if language is None else {"language": language}
    config = PretrainingDataConfig(splitter=splitter, **given)
    loaded = load_tokenizer(tokenizer) if tokenizer else None
    report = check_corpus(corpus, loaded, config, corpus_format, heldout)
    return Output(report, _corpus_lines(report), _refusal(report))


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
    shown = [f"  {problem}" for problem in report.problems[:_PROBLEMS_SHOWN]]
    if (more := len(report.problems) - _PROBLEMS_SHOWN) > 0:
        shown.append(f"  ... and {more} more, see --json")
    title = f"A build would refuse this corpus ({count_of(len(report.problems), 'problem')}):"
    return InputError("\n".join([title, *shown]))


def _corpus_lines(report):
    """Yields the counts of a corpus, and examples."""
    count = report.counts
    unit = "tokens" if "pieces" in count else "characters"
    yield f"{count_of(report.files, 'file')}, {bytes_text(report.bytes)}"
    names = ["document", "paragraph", "sentence", "word"]
    named = [count_of(count[f"{name}s"], name) for name in names]
    if unit == "tokens":
        named.append(count_of(count["pieces"], "token"))
    yield f"  {', '.join(named)}"
    if count["documents"]:
        for name, text in _properties(report, unit):
            yield f"  {name:<19}  {text}"


def _properties(report, unit):
    count = report.counts
    lengths = report.sentence_lengths.items()
    shown = ", ".join(f"{quantile} {length:,}" for quantile, length in lengths)
    yield "length of sentences", f"{shown} {unit}"
    yield (
        "repeated",
        f"{percent(report.repeated_documents)} of the documents, apart from numbers and "
        "punctuation",
    )
    if report.held_out_share is not None:
        share = percent(report.held_out_share)
        yield "held-out text", f"{share} of its runs of 8 words are in the corpus"
    for pair in report.near_duplicates[:_PAIRS_SHOWN]:
        shared = f"{percent(pair.share)} of its runs of 8 words"
        yield "near-duplicate", f"{pair.name}: {shared}, most of them in {pair.other}"
    if (more := len(report.near_duplicates) - _PAIRS_SHOWN) > 0:
        yield "near-duplicate", f"{more:,} more held-out texts, see --json"
    if unit == "tokens":
        unknown = count["unknown_pieces"] / max(count["pieces"], 1)
        yield "unknown tokens", percent(unknown, 2)
