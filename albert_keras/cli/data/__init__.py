"""`albert-keras data ...`."""

from albert_keras.cli.command import App
from albert_keras.cli.data import build, check, records

app = App(name="data", help="Build, check and adopt records.", no_args_is_help=True)
for _command in (build.build, check.check, records.inspect, records.verify, records.adopt):
    app.command()(_command)
