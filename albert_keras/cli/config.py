"""`albert-keras config ...`."""

from pathlib import Path

from albert_keras.cli.command import App, Output, command
from albert_keras.cli.options import argument, option
from albert_keras.cli.output import count_of, plain
from data_pipeline.errors import InputError
from data_pipeline.settings import mistakes_in

app = App(help="Check files of settings.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def _group():
    pass  # keeps `check` a command of its own while there is only one


@app.command()
@command()
def check(
    file: Path = argument(..., "YAML or JSON file of settings.", metavar="FILE"),
    kind: str | None = option(
        None,
        "What the file is for: pretrain, finetune, distill, distill-task or data.",
        shown="determined by the keys of the file",
    ),
):
    """Report all problems of a file of settings, with line numbers; nothing is run.

    \b
    Example:
      albert-keras config check run.yaml
    """
    from albert_keras.config_files.check import check_file
    from albert_keras.config_files.kinds import find_kind

    seen = check_file(file, None if kind is None else find_kind(kind))
    values = {
        "path": seen.path,
        "kind": seen.kind.name,
        "settings": seen.settings,
        "problems": [plain(problem) for problem in seen.problems],
    }
    if not seen.problems:
        settings = count_of(seen.settings, "setting")
        use = f"next: {seen.kind.command} {seen.kind.before_file}{file} ..."
        return Output(values, [f"{file}: {settings}, no problem", use])
    summary = f"{count_of(len(seen.problems), 'problem')} in `{file}`:"
    lines = [summary, *(f"  {line}" for line in seen.lines())]
    error = InputError("\n".join(lines), *mistakes_in(seen.problems))
    return Output(values, [], error)
