"""`albert-keras serve`, `serve-check` and `server-kit`."""

import logging
import os
import signal
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Context, Option

from albert_keras.cli.command import Output, command
from albert_keras.cli.output import finish, shell, show

#: Exit code if a server returns wrong answers.
WRONG_ANSWERS = 4


@command()
def serve(
    context: Context,
    model: Annotated[list[Path], Argument(metavar="MODEL...")],
    host: str = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535)] = 8501,
    allow_host: Annotated[list[str] | None, Option(metavar="NAME")] = None,
):
    """Serve exported models on this computer: a web page and REST.

    Examples:
      albert-keras serve albert-mini-en
      albert-keras serve saved_models/books
      albert-keras serve saved_models/books saved_models/sst2/3 --port 0
      albert-keras serve saved_models

    The REST routes are those of tensorflow_model_server to predict. --verbose logs each request.
    Models are loaded at the start: what happens to their folders later changes no answer.
    Ctrl-C and SIGTERM end the server after the answers in progress, within 10 seconds; a second
    Ctrl-C ends it at once.

    Args:
      model: Exported model or name of a shipped one, whose newest version is served; one version of
        a model; or a folder of models.
      host: IP address to listen on.
      port: Port; 0 selects a free one.
      allow_host: A name by which clients may address the server, besides its own address; may be
        repeated. 0.0.0.0 and :: need one.
    """
    as_json, logs_requests = context.params["as_json"], context.params["verbose"]
    from albert_keras.serving.local.local_server import LocalServer

    with LocalServer(model, host, port, logs_requests, allow_host or ()) as server:
        finish()  # an idle server prints nothing
        if logs_requests:
            logging.basicConfig(format="%(asctime)s %(message)s")
        # uvicorn raises the signal again after the answers in progress. TensorFlow may be busy for
        # longer, but no file is being written.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, frame: os._exit(128 + number))
        models = [{"name": one.name, "version": one.version} for one in server.models.values()]
        listed = ", ".join(f"{one['name']} (version {one['version']})" for one in models)
        result = {"url": server.url, "models": models}
        later = "A version that appears later, and a change of a folder, needs a new start."
        show(result, [f"serving {listed}: {server.url}", later], as_json)
        server.run()


@command()
def serve_check(
    url: Annotated[str, Option("--rest", metavar="URL")],
    model: Annotated[str, Option()],
    timeout: Annotated[float, Option(min=0.1, max=3600)] = 30.0,
):
    """Check that a model server answers each signature of a model.

    Exit codes: 0 if all answers are right; 4 if some are wrong or missing; 2 if there is no such
    server or model, or the input is invalid.

    Examples:
      albert-keras serve-check --rest http://127.0.0.1:8501 --model books

    Args:
      url: REST address, such as http://127.0.0.1:8501.
      model: Model name on the server.
      timeout: Timeout of a request in seconds.
    """
    from albert_keras.serving.serve_check import serve_check as check_server

    result = check_server(url, model, timeout)
    error = typer.Exit(WRONG_ANSWERS) if result.faults else None
    return Output(result._asdict(), result.lines, error)


@command()
def server_kit(
    model: Path,
    folder: Annotated[Path, Option("--out")],
):
    """Write the files to run tensorflow_model_server.

    The files are its settings and a file for Docker Compose, with all cores of this computer and
    memory for two versions. Edit them for another computer.

    Examples:
      albert-keras server-kit saved_models/books --out kits/books
      albert-keras server-kit saved_models/books/2 --out kits/books-2

    Args:
      model: Exported model: the folder of its versions or of one version, or the name of a shipped
        model.
      folder: Output folder.
    """
    from albert_keras.serving.kit.server_kit import write_kit

    name = write_kit(folder, model)
    files = sorted(path.name for path in folder.iterdir())
    lines = [
        f"{folder}: {', '.join(files)}",
        f"next: {shell('docker', 'compose', '--project-directory', folder, 'up')}",
        f"then: albert-keras serve-check --rest http://127.0.0.1:8501 --model {name}",
    ]
    return Output({"path": folder, "model": name, "files": files}, lines)
