"""`albert-keras serve`."""

import logging
import os
import signal
from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import finish, show, start


def serve(
    model: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL...",
            help="Exported model: folder of its versions (takes the newest) or of one version.",
            show_default=False,
        ),
    ],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes one that is free.")] = 8501,
    requests_per_second: Annotated[
        float | None, options.option(help="Of one client, in the long run.", default="50")
    ] = None,
    burst: Annotated[
        int | None, options.option(help="Requests of one client at once.", default="500")
    ] = None,
    computed_at_once: Annotated[
        int | None, options.option(help="Requests computed at the same time.", default="2")
    ] = None,
    rows: Annotated[int | None, options.option(help="Texts of one request.", default="64")] = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Serve exported models on this computer: a page to try them, and the REST interface.

    \b
    Example:
      albert-keras serve saved_models/books
      albert-keras serve saved_models/books saved_models/sst2/3 --port 0

    The REST interface is that of tensorflow_model_server; --verbose shows each request.
    """
    start(verbose, debug)
    from albert_keras.serving.local.limits import Limits
    from albert_keras.serving.local.local_server import serve as serve_models

    given = {
        "requests_per_second": requests_per_second,
        "burst": burst,
        "computed_at_once": computed_at_once,
        "rows": rows,
    }
    limits = Limits(**{name: value for name, value in given.items() if value is not None})

    def ready(server):
        finish()  # nothing is to be told while nobody asks
        if verbose or debug:
            logging.basicConfig(format="%(asctime)s %(message)s")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, _leave)
        models = [{"name": one.name, "version": one.version} for one in server.models.values()]
        listed = ", ".join(f"{one['name']} (version {one['version']})" for one in models)
        result = {"url": server.url, "models": models}
        show(result, [f"serving {listed}: {server.url}"], as_json)

    serve_models(model, host, port, limits, access_log=verbose or debug, ready=ready)


def _leave(number, frame):
    """Ends the process at once: nothing is being written, and TensorFlow may be at work."""
    os._exit(128 + number)
