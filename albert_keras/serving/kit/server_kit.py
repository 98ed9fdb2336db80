"""Writes the files that it takes to run `tensorflow_model_server` on an export."""

import json
import math
import os
import shlex
from importlib.resources import files
from pathlib import Path
from string import Template

from albert_keras.serving.kit.example_requests import curl_script, example_requests
from albert_keras.serving.layout import (
    check_label,
    check_model_name,
    check_version,
    existing_versions,
    size_of,
)
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_folder

_SCRIPTS = ("docker-run.sh", "curl.sh", "client.py")
#: Suffix of templates that are not valid files of their kind.
_TEMPLATE_SUFFIX = ".template"


class _KitTemplate(Template):
    delimiter = "%"  # `$` has a meaning in shell and nginx


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
        folder: str or Path. The new folder; it must not exist, or be empty.
        model_name: str. Name of the model on the server.
        base_path: str or Path. Folder of the export, with a folder for each version.
        latest: int. Number of newest versions to serve.
        specific: iterable of int. Versions to serve instead.
        labels: dict of label -> version, or None. Labels of served versions.
        cores: int or None. Number of CPU cores of the server; None takes those of this computer.
        max_batch_size: int. Maximum number of rows of one call of the graph, and of one request; at
            least the rows of the warm-up requests of the versions.
        memory_gib: int or None. None takes twice the size of the largest version plus 1 GiB.
        rest_port, grpc_port, proxy_port: int. Ports on loopback.

    Returns:
        Path. `folder`.

    Raises:
        InputError: If a name, version, label or number is invalid, if there is no export at
            `base_path`, or if `folder` is not empty.
    """
    from albert_keras.serving.saved_model.signature_methods import (
        read_signatures,  # loads TensorFlow
    )

    folder, base_path = Path(folder), Path(base_path).absolute()
    check_model_name(model_name)
    _check_path(base_path)
    specific = tuple(specific)
    served = _served_versions(existing_versions(base_path), latest, specific)
    policy = f"latest {{ num_versions: {latest} }}"
    if specific:
        policy = f"specific {{ {' '.join(f'versions: {version}' for version in specific)} }}"
    labels = dict(labels or {})
    for label, version in labels.items():
        if check_version(version) not in served:
            raise InputError(
                f"The label `{check_label(label)}` must be for a version that is served "
                f"({', '.join(map(str, served))}). Received: {version}."
            )
        check_label(label)
    cores = os.cpu_count() if cores is None else cores
    size = max(size_of(base_path / str(version)) for version in served)
    memory = math.ceil(2 * (size / 2**30 + 1)) if memory_gib is None else memory_gib
    numbers = {"cores": cores, "max_batch_size": max_batch_size, "memory_gib": memory}
    ports = {"rest_port": rest_port, "grpc_port": grpc_port, "proxy_port": proxy_port}
    for name, number in (numbers | ports).items():
        _check_number(name, number, 65535 if name in ports else 2**20)
    if len(set(ports.values())) < 3:
        raise InputError(f"The three ports must be different. Received: {ports}.")
    check_output_folder(folder, "folder")
    for version in served:
        rows = _most_warm_up_rows(base_path / str(version))
        if rows > max_batch_size:
            raise InputError(
                f"`max_batch_size` must be at least {rows}, the rows of a warm-up request of "
                f"version {version}; otherwise the server rejects that version. "
                f"Received: {max_batch_size}."
            )
    requests = example_requests(read_signatures(base_path / str(served[-1])))

    values = {
        "model": model_name,
        "base_path": base_path,
        "quoted_base_path": shlex.quote(str(base_path)),
        "policy": policy,
        "labels": "".join(
            f'    version_labels {{ key: "{label}" value: {version} }}\n'
            for label, version in labels.items()
        ),
        # Without this flag, a label of a version that is not loaded yet ends the server at startup.
        "more_flags": " \\\n  --allow_version_labels_for_unavailable_models" if labels else "",
        "allowed_batch_sizes": "\n".join(
            f"allowed_batch_sizes: {size}" for size in _batch_sizes(max_batch_size)
        ),
        # A thread waits for its batch: with fewer threads than rows no batch would become full.
        "threads": 2 * max_batch_size,
        # Texts and finite numbers are written in JSON as in Python.
        "examples": "\n".join(f'    ("{key}", {json.dumps(body)}),' for key, body in requests),
        **numbers,
        **ports,
    }
    with whole_folder(folder) as staging:
        for template in files("albert_keras.serving.kit").joinpath("templates").iterdir():
            text = _KitTemplate(template.read_text(encoding="utf-8")).substitute(values)
            name = template.name.removesuffix(_TEMPLATE_SUFFIX)
            (staging / name).write_text(text, encoding="utf-8")
        script = curl_script(model_name, requests, rest_port)
        (staging / "curl.sh").write_text(script, encoding="utf-8")
        for name in _SCRIPTS:
            (staging / name).chmod(0o755)
    return folder


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


def _batch_sizes(largest):
    """Returns the powers of two below the largest batch size, and that size."""
    return [2**power for power in range(largest.bit_length()) if 2**power < largest] + [largest]


def _check_number(name, number, most):
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= most:
        raise InputError(f"`{name}` must be an int from 1 to {most}. Received: {number!r}.")


def _check_path(path):
    """Refuses characters that text protos, `docker --mount` and Markdown quote differently."""
    if not str(path).isprintable() or set(str(path)) & set("\"',\\`%:"):
        raise InputError(
            "The path of an export to serve must not contain quotes, commas, colons, backslashes, "
            f"percent signs or control characters. Received: {str(path)!r}. Move the export."
        )


def _most_warm_up_rows(folder):
    """Returns the number of rows of the largest warm-up request of a version, 0 if it has none."""
    import tensorflow as tf
    from google.protobuf.message import DecodeError
    from tensorflow_serving.apis import prediction_log_pb2

    from albert_keras.serving.saved_model.warm_up import WARM_UP_FILE

    path = folder / WARM_UP_FILE
    if not path.is_file():
        return 0
    most = 0
    try:
        for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
            log = prediction_log_pb2.PredictionLog.FromString(record)
            kind = log.WhichOneof("log_type")
            if kind == "predict_log":
                inputs = log.predict_log.request.inputs.values()
                most = max([most, *(one.tensor_shape.dim[0].size for one in inputs)])
            elif kind in ("classify_log", "regress_log"):
                examples = getattr(log, kind).request.input.example_list.examples
                most = max(most, len(examples))
    except (tf.errors.DataLossError, DecodeError) as error:
        raise InputError(
            f"`{path}` is damaged, so a server would reject the version. Export it again."
        ) from error
    return most
