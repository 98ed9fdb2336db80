"""Writes what it takes to run `tensorflow_model_server` on an export: settings, start, proxy."""

import math
import os
import shlex
from importlib.resources import files
from pathlib import Path
from string import Template

from albert_keras.serving.kit.example_requests import curl_script, example_requests, python_literal
from albert_keras.serving.kit.warm_up_rows import most_warm_up_rows
from albert_keras.serving.layout import existing_versions, size_of
from albert_keras.serving.names import check_label, check_model_name, check_version
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_folder

_SCRIPTS = ("docker-run.sh", "curl.sh", "client.py")
#: Ends the names of templates that are no files of their kind yet.
_UNFILLED = ".template"


class _KitTemplate(Template):
    delimiter = "%"  # `$` means something in shell and nginx


def write_kit(
    folder,
    model_name,
    base_path,
    latest=1,
    specific=(),
    labels=None,
    cores=None,
    max_batch_size=32,
    memory_gib=None,
    rest_port=8501,
    grpc_port=8500,
    proxy_port=8080,
):
    """Writes a folder with `models.config`, `docker-run.sh`, `nginx.conf`, `client.py` and so on.

    Args:
        folder: str or Path. To appear; it must not exist, or be empty.
        model_name: str. By which clients ask.
        base_path: str or Path. Folder of the export, with a folder for each version.
        latest: int. So many of the newest versions are served.
        specific: iterable of int. These versions instead.
        labels: dict of label -> version, or None. Versions that are served.
        cores: int or None. Of the server; None takes those of this computer.
        max_batch_size: int. Rows of one call of the graph, and of one request; no fewer than those
            of the warm-up requests of the versions.
        memory_gib: int or None. None takes twice the size of the largest version and 1 GiB.
        rest_port, grpc_port, proxy_port: int. All on loopback.

    Returns:
        Path. `folder`.

    Raises:
        InputError: If a name, version, label or number cannot be, if there is no export at
            `base_path`, or if there is something at `folder`.
    """
    from albert_keras.serving.saved_model.signature_methods import (
        read_signatures,  # loads TensorFlow
    )

    folder, base_path = Path(folder), Path(base_path).absolute()
    check_model_name(model_name)
    _check_path(base_path)
    found = existing_versions(base_path)
    specific = tuple(check_version(version) for version in specific)
    served = _served(found, latest, specific)
    labels = dict(labels or {})
    for label, version in labels.items():
        if check_version(version) not in served:
            raise InputError(
                f"The label `{check_label(label)}` should be of a version that is served "
                f"({', '.join(map(str, served))}). Received: {version}."
            )
        check_label(label)
    cores = os.cpu_count() if cores is None else cores
    size = max(size_of(base_path / str(version)) for version in served)
    memory = math.ceil(2 * (size / 2**30 + 1)) if memory_gib is None else memory_gib
    numbers = {"cores": cores, "max_batch_size": max_batch_size, "memory_gib": memory}
    for name, number in numbers.items():
        _check_number(name, number, 1, 2**20)
    ports = {"rest_port": rest_port, "grpc_port": grpc_port, "proxy_port": proxy_port}
    for name, number in ports.items():
        _check_number(name, number, 1, 65535)
    if len(set(ports.values())) < 3:
        raise InputError(f"The three ports should differ. Received: {ports}.")
    check_output_folder(folder, "folder")
    for version in served:
        rows = most_warm_up_rows(base_path / str(version))
        if rows > max_batch_size:
            raise InputError(
                f"`max_batch_size` should be at least {rows}, the rows of a warm-up request of "
                f"version {version}: with less a server refuses it. Received: {max_batch_size}."
            )
    requests = example_requests(read_signatures(base_path / str(served[-1])))

    values = {
        "model": model_name,
        "base_path": base_path,
        "quoted_base_path": shlex.quote(str(base_path)),
        "policy": _policy(latest, specific),
        "labels": "".join(
            f'    version_labels {{ key: "{label}" value: {version} }}\n'
            for label, version in labels.items()
        ),
        # A label of a version that is not loaded yet would end the server at its start.
        "more_flags": " \\\n  --allow_version_labels_for_unavailable_models" if labels else "",
        "allowed_batch_sizes": "\n".join(
            f"allowed_batch_sizes: {size}" for size in _batch_sizes(max_batch_size)
        ),
        # Each waits for its batch: with fewer threads than rows no batch would ever be full.
        "threads": 2 * max_batch_size,
        "examples": python_literal(requests),
        **numbers,
        **ports,
    }
    with whole_folder(folder) as staging:
        for template in files("albert_keras.serving.kit").joinpath("templates").iterdir():
            text = _KitTemplate(template.read_text(encoding="utf-8")).substitute(values)
            name = template.name.removesuffix(_UNFILLED)
            (staging / name).write_text(text, encoding="utf-8")
        script = curl_script(model_name, requests, rest_port)
        (staging / "curl.sh").write_text(script, encoding="utf-8")
        for name in _SCRIPTS:
            (staging / name).chmod(0o755)
    return folder


def _served(found, latest, specific):
    if not specific:
        _check_number("latest", latest, 1, 2**31 - 1)
        return found[-latest:]
    for version in specific:
        if version not in found:
            raise InputError(
                f"`specific` should list versions that are there ({', '.join(map(str, found))}). "
                f"Received: {version}."
            )
    return sorted(specific)


def _policy(latest, specific):
    if specific:
        return f"specific {{ {' '.join(f'versions: {version}' for version in specific)} }}"
    return f"latest {{ num_versions: {latest} }}"


def _batch_sizes(largest):
    """Returns the powers of two below the largest batch, and that."""
    return [2**power for power in range(largest.bit_length()) if 2**power < largest] + [largest]


def _check_number(name, number, least, most):
    if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
        raise InputError(f"`{name}` should be an int from {least} to {most}. Received: {number!r}.")


def _check_path(path):
    """Refuses what text protos, `docker --mount` and Markdown would each want quoted otherwise."""
    if not str(path).isprintable() or set(str(path)) & set("\"',\\`%:"):
        raise InputError(
            "The path of an export to serve should have no quotes, commas, colons, backslashes, "
            f"percent signs or control characters in it. Received: {str(path)!r}."
        )
