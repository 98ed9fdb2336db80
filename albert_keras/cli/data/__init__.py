"""`albert-keras data ...`."""

from albert_keras.cli.command import App
from albert_keras.cli.data import build, check, records

app = App(name="data", help="Check text, and build and check records.", no_args_is_help=True)
for _command in (build.build, check.check, records.inspect, records.verify):
    app.command()(_command)
