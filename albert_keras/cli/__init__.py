"""The command line `albert-keras`. TensorFlow is not imported before a command runs."""

import sys

import typer

from albert_keras.cli import (
    analyze,
    convert,
    data,
    demo,
    distill,
    doctor,
    embed,
    evaluate,
    export,
    finetune,
    init,
    plan,
    predict,
    pretrain,
    runs,
    serve,
    similar,
    study,
    vocab,
)
from albert_keras.cli.command import PANELS, USAGE_ERRORS, App
from albert_keras.cli.interruption import EXIT_CODE, ending_in_time
from albert_keras.cli.output import finish, report_error, restart_if_worker_lost

#: The commands by the panel of the help that lists them, as data flows.
_COMMANDS = dict(
    zip(
        PANELS,
        (
            {"demo": demo.demo, "doctor": doctor.doctor, "init": init.init},
            {"vocab": vocab.app, "data": data.app},
            {
                "plan": plan.plan,
                "pretrain": pretrain.pretrain,
                "distill": distill.distill,
                "finetune": finetune.finetune,
            },
            {
                "evaluate": evaluate.evaluate,
                "predict": predict.predict,
                "embed": embed.embed,
                "similar": similar.similar,
            },
            {
                "export": export.export,
                "serve": serve.serve,
                "serve-check": serve.serve_check,
                "server-kit": serve.server_kit,
            },
            {"convert": convert.convert, "analyze": analyze.app, "runs": runs.app},
        ),
        strict=False,
    )
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
runs.app.command("study")(study.study)
for _panel, _commands in _COMMANDS.items():
    for _name, _command in _commands.items():
        if isinstance(_command, App):
            app.add_typer(_command, name=_name, rich_help_panel=_panel)
        else:
            app.command(_name, rich_help_panel=_panel)(_command)


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
    try:
        with ending_in_time():
            code = app(argv, prog_name="albert-keras", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except SystemExit as finished:
        return finished.code or 0
    except typer.Abort:  # Ctrl-C before the command ran
        return EXIT_CODE
    except Exception as error:
        if isinstance(error, USAGE_ERRORS):
            error.message = error.message.removeprefix("Value error, ")  # of pydantic
            error.show()
            return error.exit_code
        restart_if_worker_lost(error)
        return report_error(error, debug="--debug" in argv)
    finally:
        finish()
