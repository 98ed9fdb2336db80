"""`albert-keras data ...`."""

import typer

from albert_keras.cli.data import build, check, records

app = typer.Typer(
    help="Build, check and adopt records.", no_args_is_help=True, rich_markup_mode=None
)
app.command("build")(build.build)
app.command("check")(check.check)
app.command("inspect")(records.inspect)
app.command("verify")(records.verify)
app.command("adopt")(records.adopt)
