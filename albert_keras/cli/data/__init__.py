"""`albert-keras data ...`: one file per command."""

import typer

from albert_keras.cli.data import adopt, build, check, inspect, verify

app = typer.Typer(
    help="Make, check and take over records.", no_args_is_help=True, rich_markup_mode=None
)
app.command("build")(build.build)
app.command("check")(check.check)
app.command("inspect")(inspect.inspect)
app.command("verify")(verify.verify)
app.command("adopt")(adopt.adopt)
