"""`albert-keras serve-check`."""

from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start

#: Exit code where a server answers otherwise than it should.
WRONG_ANSWERS = 4
#: Texts to ask are a few; a larger file is something else.
_MAX_BYTES = 16 << 20


def serve_check(
    model: Annotated[str, typer.Option(help="Its name at the server.", show_default=False)],
    rest: Annotated[
        str | None, options.option(help="Address of REST: http://127.0.0.1:8501.", metavar="URL")
    ] = None,
    grpc: Annotated[
        str | None, options.option(help="Address of gRPC: 127.0.0.1:8500.", metavar="HOST:PORT")
    ] = None,
    clients: Annotated[int, typer.Option(min=1, help="How many ask at the same time.")] = 4,
    requests: Annotated[
        int, typer.Option(min=0, help="Of all clients, over each interface; 0 measures nothing.")
    ] = 200,
    texts: Annotated[
        Path | None,
        options.option(help="Texts to ask under load, one per line.", default="three sentences"),
    ] = None,
    timeout: Annotated[float, typer.Option(help="Seconds for one request.")] = 30.0,
    feature: Annotated[
        list[str] | None,
        options.option(
            help="Feature that classify and regress read; may be repeated.", default="text, pair"
        ),
    ] = None,
    label: Annotated[
        str | None, options.option(help="Label of a loaded version, to ask it as well.")
    ] = None,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Ask a running model server what it must answer, then measure how fast it does.

    Give --rest, --grpc, or both. Ask the server itself, not a proxy before it. Exit code 0: all
    answers were right; 4: some were wrong or missing; 2: no server, no such model, or unusable
    input.

    \b
    Example:
      albert-keras serve-check --rest http://127.0.0.1:8501 --grpc 127.0.0.1:8500 --model books
      albert-keras serve-check --rest http://127.0.0.1:8501 --model books --clients 16 \\
          --requests 2000 --texts questions.txt --json
    """
    start(verbose, debug)
    from albert_keras.serving.check.golden_cases import FEATURES
    from albert_keras.serving.check.serve_check import TEXTS
    from albert_keras.serving.check.serve_check import serve_check as check

    result = check(
        rest,
        model,
        clients,
        requests,
        TEXTS if texts is None else _read(texts),
        timeout,
        tuple(feature) if feature else FEATURES,
        grpc,
        label,
    )
    show(result.to_dict(), result.lines, as_json)
    if not result.ok:
        raise typer.Exit(WRONG_ANSWERS)


def _read(path):
    """Returns the lines of a file."""
    from data_pipeline.errors import InputError

    if path.is_file() and path.stat().st_size > _MAX_BYTES:
        raise InputError(f"`{path}` should hold at most {_MAX_BYTES >> 20} MiB of texts.")
    try:
        text = path.read_bytes().decode()
    except UnicodeDecodeError as error:
        raise InputError(f"`{path}` is not UTF-8: {error}.") from error
    lines = [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]
    if not text.strip():
        raise InputError(f"`{path}` should hold at least one text. Received: none.")
    return lines
