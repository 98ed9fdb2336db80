"""`albert-keras data check --task`: the examples of a task."""

from albert_keras.cli.command import Output
from albert_keras.cli.output import plain
from albert_keras.report import count_of
from albert_keras.tasks.task_config import OWN_TASKS, TaskConfig
from data_pipeline.errors import InputError
from data_pipeline.settings import option, options_of

_GOOD, _WARNING, _PLAIN = "✔", "⚠", " "


class ExampleOptions(TaskConfig):
    """The options of `data check`: the options of a task, but none is required."""

    name: str | None = option(
        None,
        "Task whose examples are checked: a GLUE task, squad1, squad2 or race; or classification, "
        "pair, regression, tagging or similarity for your own files.",
        keyword="task",
    )
    skip_bad_rows: bool = option(
        False, "Skip the rows of tables that cannot be used; --json lists all of them."
    )
    max_seq_length: int | None = option(
        None,
        "Tokens per record or per row of a task.",
        default_text="512; with --task the default of finetune",
    )


def check_task(flags, tokenizer):
    """Checks the examples of a task.

    Args:
        flags: dict. Values by the keywords of `ExampleOptions`.
        tokenizer: Path or None. As in `load_tokenizer`.

    Returns:
        Output.
    """
    paths = {keyword: option.path for keyword, option in options_of(ExampleOptions).items()}
    config = TaskConfig(**{paths[keyword][0]: value for keyword, value in flags.items()})
    if config.name in OWN_TASKS and config.train is None:
        raise InputError(
            f"`--train` must be the file of examples of {config.name}. Received: none."
        )
    from albert_keras.formats.open_model import load_tokenizer
    from albert_keras.tasks.example_report import Finding, report_task
    from albert_keras.tasks.kinds import build_task

    task = build_task(config)
    reports = report_task(task, load_tokenizer(tokenizer) if tokenizer else None)
    skipped = [row for rows in task.skipped_rows.values() for row in rows]
    warnings = [f"{split}: {text}" for split, one in reports.items() for text in one.warnings]
    lines = list(_lines(task, reports, tokenizer))
    if skipped:
        warnings.append(f"skipped rows: {count_of(len(skipped), 'row')} cannot be used")
        lines.append(
            _line(Finding(False, "skipped rows", f"{len(skipped):,}; --json lists all of them"))
        )
    lines.append(count_of(len(warnings), "warning"))
    values = {
        "task": task.config.name,
        "splits": plain(reports),
        "skipped_rows": plain(skipped),
        "warnings": warnings,
    }
    return Output(values, lines)


def _lines(task, reports, tokenizer):
    length = task.max_seq_length
    yield f"{task.config.name}: rows of at most {length} tokens, scored by {task.metric}"
    for split, one in reports.items():
        yield f"{split}: {count_of(one.examples, 'example')}"
        for finding in one.findings:
            yield _line(finding)
            yield from (f"{'':19}  {detail}" for detail in finding.details)
    if tokenizer is None:
        yield "  tokens             give --tokenizer for lengths in tokens and unknown tokens"


def _line(finding):
    mark = {True: _GOOD, False: _WARNING, None: _PLAIN}[finding.is_good]
    return f"{mark} {finding.name:<17}  {finding.text}"
