"""`albert-keras serve`, `serve-check` and `server-kit`."""

import logging
import os
import shlex
import signal
import threading
from pathlib import Path

import typer

from albert_keras.cli.command import Debug, Json, LogFormat, Output, Verbose, command
from albert_keras.cli.options import argument, option
from albert_keras.cli.output import finish, show, start
from data_pipeline.errors import InputError
from data_pipeline.limits import read_limited

#: Exit code if a server returns wrong answers.
WRONG_ANSWERS = 4
#: Largest file of texts for `serve-check`.
_MAX_BYTES = 16 << 20


def serve(
    model: list[Path] = argument(
        ...,
        "Exported model or name of a shipped one, whose newest version is served; one version of a "
        "model; or a folder of models.",
        metavar="MODEL...",
    ),
    host: str = option("127.0.0.1", "Address to listen on."),
    port: int = option(8501, "Port; 0 selects a free one.", min=0, max=65535),
    requests_per_second: float = option(50, "Sustained requests per second of one client."),
    burst: int = option(500, "Requests one client may send at once."),
    computed_at_once: int = option(2, "Requests computed at the same time."),
    rows: int = option(64, "Texts per request."),
    as_json: Json = False,
    log_format: LogFormat = "text",
    verbose: Verbose = False,
    debug: Debug = False,
):
    """Serve exported models on this computer: a web page and REST.

    \b
    Example:
      albert-keras serve albert-mini-en
      albert-keras serve saved_models/books
      albert-keras serve saved_models/books saved_models/sst2/3 --port 0
      albert-keras serve saved_models

    The REST interface is the same as in tensorflow_model_server. --verbose logs each request.
    Ctrl-C and SIGTERM end the server after the answers in progress, within 12 seconds; a second
    signal ends it at once.
    """
    start(verbose, debug, log_format)
    from albert_keras.serving.local.limits import Limits
    from albert_keras.serving.local.local_server import serve as serve_models

    limits = Limits(
        requests_per_second=requests_per_second,
        burst=burst,
        computed_at_once=computed_at_once,
        rows=rows,
    )

    def ready(server):
        def stop(number, frame):
            if stopped_by:  # a second signal
                os._exit(128 + number)
            stopped_by.append(number)
            server.stop()
            # TensorFlow may be busy for longer. No file is being written.
            end = threading.Timer(limits.draining_seconds + 2, os._exit, [128 + number])
            end.daemon = True
            end.start()

        finish()  # an idle server prints nothing
        if verbose or debug:
            logging.basicConfig(format="%(asctime)s %(message)s")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        models = [{"name": one.name, "version": one.version} for one in server.models.values()]
        listed = ", ".join(f"{one['name']} (version {one['version']})" for one in models)
        result = {"url": server.url, "models": models}
        show(result, [f"serving {listed}: {server.url}"], as_json)

    stopped_by: list[int] = []
    serve_models(model, host, port, limits, access_log=verbose or debug, ready=ready)
    if stopped_by:
        os._exit(128 + stopped_by[0])


@command()
def serve_check(
    model: str = option(..., "Model name on the server."),
    rest: str | None = option(None, "REST address, such as http://127.0.0.1:8501.", metavar="URL"),
    grpc: str | None = option(None, "gRPC address, such as 127.0.0.1:8500.", metavar="HOST:PORT"),
    clients: int = option(4, "Number of concurrent clients.", min=1),
    requests: int = option(
        200, "Total requests per interface for the measurement; 0 skips it.", min=0
    ),
    texts: Path | None = option(
        None, "File of texts for the measurement, one per line.", shown="three sentences"
    ),
    timeout: float = option(30.0, "Timeout of a request in seconds."),
    feature: list[str] | None = option(
        None, "Feature read by classify and regress; may be repeated.", shown="text, pair"
    ),
    label: str | None = option(None, "Version label to check in addition."),
):
    """Check the answers of a model server and measure its speed.

    Give --rest, --grpc or both. Use the address of the server, not of a proxy in front of it.
    Exit codes: 0 if all answers are right; 4 if some are wrong or missing; 2 if there is no such
    server or model, or the input is invalid.

    \b
    Example:
      albert-keras serve-check --rest http://127.0.0.1:8501 --grpc 127.0.0.1:8500 --model books
      albert-keras serve-check --rest http://127.0.0.1:8501 --model books --clients 16 \\
          --requests 2000 --texts questions.txt --json
    """
    from albert_keras.serving.check.golden_cases import FEATURES
    from albert_keras.serving.check.serve_check import TEXTS, serve_check as check

    result = check(
        rest,
        model,
        clients,
        requests,
        TEXTS if texts is None else _read_texts(texts),
        timeout,
        tuple(feature) if feature else FEATURES,
        grpc,
        label,
    )
    error = None if result.ok else typer.Exit(WRONG_ANSWERS)
    return Output(result.to_dict(), result.lines, error)


def _read_texts(path):
    """Returns the lines of a file."""
    try:
        text = read_limited(path, _MAX_BYTES).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"`{path}` is not UTF-8: {error}.") from error
    if not text.strip():
        raise InputError(f"`{path}` contains no text. Give at least one, on a line of its own.")
    return [line.removesuffix("\r") for line in text.removesuffix("\n").split("\n")]


@command()
def server_kit(
    model: Path = argument(
        ...,
        "Exported model: the folder of its versions or of one version, or the name of a shipped "
        "model.",
        metavar="MODEL",
    ),
    out: Path = option(..., "Output folder."),
    name: str | None = option(None, "Model name on the server.", shown="name of its folder"),
    latest: int | None = option(None, "Number of newest versions to serve.", shown="1"),
    specific: list[int] | None = option(
        None, "Version to serve instead; may be repeated.", metavar="VERSION"
    ),
    label: list[str] | None = option(
        None,
        "Label of a served version, such as stable=42; may be repeated.",
        metavar="LABEL=VERSION",
    ),
    cores: int | None = option(
        None, "Processor cores of the server.", shown="all cores of this computer"
    ),
    memory_gib: int | None = option(None, "Memory limit in GiB.", shown="enough for two versions"),
    max_batch_size: int = option(32, "Largest number of texts per batch."),
    rest_port: int = option(8501, "Port of REST on the loopback address."),
    grpc_port: int = option(8500, "Port of gRPC on the loopback address."),
    proxy_port: int = option(8080, "Port of the proxy on the loopback address."),
):
    """Write the files to run tensorflow_model_server.

    The files are its settings, a docker command, files for Docker Compose and Kubernetes, a proxy
    and a client.

    \b
    Example:
      albert-keras server-kit saved_models/books --out kits/books
      albert-keras server-kit saved_models/books/2 --out kits/books-2
      albert-keras server-kit saved_models/books --out kits/canary --specific 41 --specific 42 \\
          --label stable=41 --label canary=42 --cores 8 --max-batch-size 64
    """
    from albert_keras.serving.kit.server_kit import write_kit
    from albert_keras.serving.layout import split_version

    if latest is not None and specific:
        raise InputError("Give --latest or --specific, not both.")
    name = split_version(model)[0].name if name is None else name
    folder = write_kit(
        out,
        name,
        model,
        1 if latest is None else latest,
        specific or (),
        _parse_labels(label or ()),
        cores,
        max_batch_size,
        memory_gib,
        rest_port,
        grpc_port,
        proxy_port,
    )
    files = sorted(path.name for path in folder.iterdir())
    lines = [
        f"{folder}: {', '.join(files)}",
        f"next: {shlex.quote(str(folder / 'docker-run.sh'))}",
        f"then: albert-keras serve-check --rest http://127.0.0.1:{rest_port} "
        f"--grpc 127.0.0.1:{grpc_port} --model {name}",
    ]
    return Output({"path": folder, "model": name, "files": files}, lines)


def _parse_labels(assignments):
    """Parses LABEL=VERSION: dict of label -> version."""
    labels = {}
    for assignment in assignments:
        label, _, version = assignment.partition("=")
        is_number = version.isascii() and version.isdigit() and len(version) < 20
        if not is_number or label in labels:
            raise InputError(
                "`--label` must be LABEL=VERSION, with each label only once. "
                f"Received: {', '.join(assignments)}."
            )
        labels[label] = int(version)
    return labels
