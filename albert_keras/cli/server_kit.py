"""`albert-keras server-kit`."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start


def server_kit(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="Exported model, the folder that holds its versions.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the kit.", show_default=False)],
    name: Annotated[
        str | None, options.option(help="By which clients ask.", default="that of the folder")
    ] = None,
    latest: Annotated[
        int | None, options.option(help="So many of the newest versions are served.", default="1")
    ] = None,
    specific: Annotated[
        list[int] | None,
        options.option(help="This version is served instead; may be repeated.", metavar="VERSION"),
    ] = None,
    label: Annotated[
        list[str] | None,
        options.option(
            help="Name for a served version, such as stable=42; may be repeated.",
            metavar="LABEL=VERSION",
        ),
    ] = None,
    cores: Annotated[
        int | None, options.option(help="Of the server.", default="those of this computer")
    ] = None,
    memory_gib: Annotated[
        int | None, options.option(help="Limit of memory.", default="room for two versions")
    ] = None,
    max_batch_size: Annotated[int, typer.Option(help="Rows of one call of the graph.")] = 32,
    rest_port: Annotated[int, typer.Option(help="On loopback, as all.")] = 8501,
    grpc_port: Annotated[int, typer.Option()] = 8500,
    proxy_port: Annotated[int, typer.Option()] = 8080,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Write what it takes to run tensorflow_model_server: settings, docker line, proxy, client.

    \b
    Example:
      albert-keras server-kit saved_models/books --out kits/books
      albert-keras server-kit saved_models/books --out kits/canary --specific 41 --specific 42 \\
          --label stable=41 --label canary=42 --cores 8 --max-batch-size 64
    """
    start(verbose, debug)
    from albert_keras.serving.kit.server_kit import write_kit
    from data_pipeline.errors import InputError

    if latest is not None and specific:
        raise InputError("Give --latest or --specific, not both.")
    folder = write_kit(
        out,
        model.absolute().name if name is None else name,
        model,
        1 if latest is None else latest,
        specific or (),
        _labels(label or ()),
        cores,
        max_batch_size,
        memory_gib,
        rest_port,
        grpc_port,
        proxy_port,
    )
    files = sorted(path.name for path in folder.iterdir())
    name = model.absolute().name if name is None else name
    show(
        {"path": folder, "model": name, "files": files},
        [
            f"{folder}: {', '.join(files)}",
            f"next: {shlex.quote(str(folder / 'docker-run.sh'))}",
            f"then: albert-keras serve-check --rest http://127.0.0.1:{rest_port} "
            f"--grpc 127.0.0.1:{grpc_port} --model {name}",
        ],
        as_json,
    )


def _labels(assignments):
    """Returns dict of label -> version."""
    from data_pipeline.errors import InputError

    labels = {}
    for assignment in assignments:
        label, _, version = assignment.partition("=")
        is_number = version.isascii() and version.isdigit() and len(version) < 20
        if not is_number or label in labels:
            raise InputError(
                "`--label` should be LABEL=VERSION, each label once. "
                f"Received: {', '.join(assignments)}."
            )
        labels[label] = int(version)
    return labels
