"""Writes the files that it takes to run `tensorflow_model_server` on an export."""

import json
import math
import os
import shlex
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from string import Template

from albert_keras.serving.layout import (
    check_label,
    check_model_name,
    check_version,
    existing_versions,
    size_of,
    split_version,
)
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_folder

_SCRIPTS = ("docker-run.sh", "curl.sh", "client.py", "ready.sh")
#: Pinned image of the container.
SERVER_IMAGE = "tensorflow/serving:2.15.1"
#: Most rows of a warm-up request of an export, see `export` and `sample_requests`.
_WARM_UP_ROWS = 8
_CURL_POST = "curl --fail-with-body --silent --show-error --header 'Content-Type: application/json'"


class _KitTemplate(Template):
    delimiter = "%"  # `$` has a meaning in shell


def write_kit(
    folder: str | Path,
    model_name: str,
    base_path: str | Path,
    latest: int = 1,
    specific: Iterable[int] = (),
    labels: dict[str, int] | None = None,
    cores: int | None = None,
    max_batch_size: int = 32,
    memory_gib: int | None = None,
    rest_port: int = 8501,
) -> Path:
    """Writes a folder with `models.config`, `docker-run.sh`, `compose.yaml`, `client.py` and so on.

    The files name the export by its path relative to `folder`, in `.env` only.

    Args:
        folder: The new folder; it must not exist, or be empty.
        model_name: Name of the model on the server.
        base_path: Folder of the export, with a folder for each version; or one of these folders,
            and then only that version is served; or the name of a shipped model.
        latest: Number of newest versions to serve.
        specific: Versions to serve instead.
        labels: Label -> served version.
        cores: Number of CPU cores of the server; None takes all cores of this computer.
        max_batch_size: Maximum number of rows of one call of the graph, and of one request; at
            least 8, the rows of warm-up requests: a server rejects a version whose requests fail.
        memory_gib: None takes twice the sum of the largest version's size and 1 GiB, rounded up.
        rest_port: Port on loopback.

    Returns:
        `folder`.

    Raises:
        InputError: If a name, version, label or number is invalid, if there is no export at
            `base_path`, or if `folder` is not empty.
    """
    folder, (base_path, only) = Path(folder), split_version(base_path)
    check_model_name(model_name)
    _check_path(base_path)
    specific = tuple(specific)
    if only is not None:
        if latest != 1 or specific:
            raise InputError(
                "`latest` and `specific` must not be given with the folder of one version. "
                f"Received: `{base_path / str(only)}`. Give `{base_path}`."
            )
        specific = (only,)
    served = _served_versions(existing_versions(base_path), latest, specific)
    policy = f"latest {{ num_versions: {latest} }}"
    if specific:
        policy = f"specific {{ {' '.join(f'versions: {version}' for version in specific)} }}"
    labels = labels or {}
    for label, version in labels.items():
        check_label(label)
        if check_version(version) not in served:
            raise InputError(
                f"The label `{label}` must be for a version that is served "
                f"({', '.join(map(str, served))}). Received: {version}."
            )
    cores = os.cpu_count() if cores is None else cores
    size = max(size_of(base_path / str(version)) for version in served)
    memory = math.ceil(2 * (size / 2**30 + 1)) if memory_gib is None else memory_gib
    numbers = {"cores": cores, "max_batch_size": max_batch_size, "memory_gib": memory}
    for name, number in numbers.items():
        _check_number(name, number, 2**20)
    _check_number("rest_port", rest_port, 65535)
    _check_number("max_batch_size", max_batch_size, 2**20, _WARM_UP_ROWS)
    check_output_folder(folder, "folder")
    # It loads TensorFlow, so that mistakes are reported before.
    from albert_keras.serving.kit.example_requests import example_requests

    requests = example_requests(base_path / str(served[-1]))
    # The powers of two below the largest batch size, and that size.
    powers = [2**power for power in range(max_batch_size.bit_length())]
    batch_sizes = sorted({*powers, max_batch_size})

    values = {
        "model": model_name,
        "model_folder": os.path.relpath(os.path.realpath(base_path), os.path.realpath(folder)),
        "policy": policy,
        "labels": "".join(
            f'    version_labels {{ key: "{label}" value: {version} }}\n'
            for label, version in labels.items()
        ),
        "allowed_batch_sizes": "\n".join(f"allowed_batch_sizes: {size}" for size in batch_sizes),
        # A thread waits for its batch: with fewer threads than rows no batch would become full.
        "threads": 2 * max_batch_size,
        # Texts and finite numbers are written in JSON as in Python.
        "examples": "\n".join(f'    ("{key}", {_as_json(body)}),' for key, body in requests),
        "curl_requests": "\n".join(
            f'{_CURL_POST} "$model:{method}" --data {shlex.quote(_as_json(body))}'
            for method, body in requests
        ),
        "server_image": SERVER_IMAGE,
        "rest_port": rest_port,
        **numbers,
    }
    flags = _server_flags(values, labels)
    values |= {
        "shell_flags": " \\\n  ".join(flags),
        "compose_flags": "\n".join(f'      - "{flag}"' for flag in flags),
    }
    with whole_folder(folder) as staging:
        for name, text in _rendered(values).items():
            (staging / name).write_text(text, encoding="utf-8")
        for name in _SCRIPTS:
            (staging / name).chmod(0o755)
    return folder


def _server_flags(values, labels):
    """Returns the flags of `tensorflow_model_server`, the same for both ways to start it."""
    threads, cores = values["threads"], values["cores"]
    flags = [
        "--model_config_file=/kit/models.config",
        "--enable_batching=true",
        "--batching_parameters_file=/kit/batching.config",
        "--monitoring_config_file=/kit/monitoring.config",
        "--enable_profiler=false",
        "--rest_api_timeout_in_ms=30000",
        f"--rest_api_num_threads={threads}",
        f"--grpc_max_threads={threads}",
        f"--tensorflow_intra_op_parallelism={cores}",
        f"--tensorflow_inter_op_parallelism={cores}",
    ]
    # Without this flag, a label of a version that is not loaded yet ends the server at startup.
    return [*flags, *(["--allow_version_labels_for_unavailable_models"] if labels else [])]


def _rendered(values):
    """Returns the name and the text of each file of a kit."""
    templates = {
        _file_name(template.name): _KitTemplate(template.read_text(encoding="utf-8"))
        for template in files("albert_keras.serving.kit").joinpath("templates").iterdir()
    }
    return {
        name: template.substitute(values).rstrip() + "\n" for name, template in templates.items()
    }


def _file_name(template):
    # Templates that are not valid files of their kind have the suffix. A package has no hidden
    # files.
    return ".env" if template == "dotenv" else template.removesuffix(".template")


def _as_json(body):
    return json.dumps(body, ensure_ascii=False)


def _served_versions(existing, latest, specific):
    if not specific:
        _check_number("latest", latest, 2**31 - 1)
        return existing[-latest:]
    for version in specific:
        if check_version(version) not in existing:
            raise InputError(
                f"`specific` must list existing versions ({', '.join(map(str, existing))}). "
                f"Received: {version}."
            )
    return sorted(specific)


def _check_number(name, number, most, least=1):
    is_int = isinstance(number, int) and not isinstance(number, bool)
    if not is_int or not least <= number <= most:
        raise InputError(f"`{name}` must be an int from {least} to {most}. Received: {number!r}.")


def _check_path(path):
    """Refuses characters that text protos, `docker --mount` and Markdown quote differently."""
    if not str(path).isprintable() or set(str(path)) & set("\"',\\`%:"):
        raise InputError(
            "The path of an export to serve must not contain quotes, commas, colons, backslashes, "
            f"percent signs or control characters. Received: {str(path)!r}. Move the export."
        )
