"""`albert-keras data ...`."""

from albert_keras.cli.command import App
from albert_keras.cli.data import build, check, records

app = App(help="Build, check and adopt records.", no_args_is_help=True)
app.command("build")(build.build)
app.command("check")(check.check)
app.command("inspect")(records.inspect)
app.command("verify")(records.verify)
app.command("adopt")(records.adopt)
