"""The command line `albert-keras`. TensorFlow is not imported before a command runs."""

import gc
import sys

import typer

from albert_keras.cli import (
    convert,
    data,
    demo,
    distill,
    doctor,
    embed,
    evaluate,
    export,
    fill_mask,
    finetune,
    init,
    plan,
    predict,
    pretrain,
    runs,
    serve,
    vocab,
)
from albert_keras.cli.command import USAGE_ERRORS, App
from albert_keras.cli.interruption import EXIT_CODE, interrupted
from albert_keras.cli.output import finish, report_error
from albert_keras.report import printable

#: The commands in the order of the help; groups of commands follow.
_COMMANDS = (
    demo.demo,
    doctor.doctor,
    init.init,
    plan.plan,
    pretrain.pretrain,
    distill.distill,
    finetune.finetune,
    evaluate.evaluate,
    predict.predict,
    fill_mask.fill_mask,
    fill_mask.sentence_order,
    embed.embed,
    embed.similar,
    export.export,
    serve.serve,
    serve.serve_check,
    serve.server_kit,
    convert.convert,
)

app = App(
    name="albert-keras",
    help="Pre-train, fine-tune and serve ALBERT with TensorFlow.",
    epilog="Start with `albert-keras demo`. See `albert-keras COMMAND --help` for each command.",
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for _command in _COMMANDS:
    app.command()(_command)
for _group in (vocab.app, data.app, runs.app):
    app.add_typer(_group)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Show the version and exit.")):
    if version:
        from importlib.metadata import version as version_of

        typer.echo(f"albert-keras {version_of('albert-keras')}")
        raise typer.Exit()


def main(argv=None):
    """Runs the command line.

    Args:
        argv: list of str or None. Arguments; None uses the arguments of the process.

    Returns:
        int. Exit code: 0 success; 1 internal error, or a problem that `doctor` found; 2 invalid
        input; 3 training diverged; 4 a server returned wrong answers; 130 or 143 interrupted.
    """
    argv = sys.argv[1:] if argv is None else argv
    # Modules and graphs are millions of objects that live as long as the process. To search all of
    # them for cycles whenever 700 more exist took a fifth of the time of a short command.
    gc.set_threshold(100_000, 50, 50)
    try:
        code = app(argv, prog_name="albert-keras", standalone_mode=False)
        if code == EXIT_CODE:
            typer.echo(interrupted(), err=True)
        return code if isinstance(code, int) else 0
    except SystemExit as finished:
        return finished.code or 0
    except Exception as error:
        if isinstance(error, typer.Abort):  # of an error at the end of a file
            error = error.__cause__
        if isinstance(error, USAGE_ERRORS):
            error.message = printable(error.message)
            error.show()
            return error.exit_code
        return report_error(error, debug="--debug" in argv)
    finally:
        finish()
