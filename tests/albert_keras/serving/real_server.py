"""The model server that tests ask: the real one where it is installed, else the contract server."""

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from google.protobuf import text_format

from albert_keras.serving.client.client_errors import ServingError
from albert_keras.serving.client.rest_client import RestClient
from tests.albert_keras.serving.contract.protos import MESSAGES
from tests.albert_keras.serving.contract.versions import VersionPolicy
from tests.albert_keras.serving.contract_server import ContractServer

EXECUTABLE = "tensorflow_model_server"
#: Seconds until all models are loaded.
_PATIENCE = 120


class RealServer(NamedTuple):
    """Where a server listens, as the attributes of ContractServer."""

    url: str
    grpc_target: str


@contextlib.contextmanager
def model_server(models, **options):
    """Serves models, with `tensorflow_model_server` if it is on the PATH.

    Args:
        models: dict of name -> folder with versions, or dict of arguments of ModelVersions.
        **options: The options of ContractServer.

    Yields:
        ContractServer or RealServer, with `url` and `grpc_target`; each model has a version that
        answers, unless none of its versions loads.
    """
    executable = shutil.which(EXECUTABLE)
    if executable is None:
        with ContractServer(models, with_grpc=True, **options) as server:
            yield server
        return
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "log", "w+b") as log:
        rest_port, grpc_port = free_ports(2)
        command = server_command(executable, folder, models, rest_port, grpc_port, **options)
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            server = RealServer(f"http://127.0.0.1:{rest_port}", f"127.0.0.1:{grpc_port}")
            for name in models:
                with RestClient(server.url, name, timeout=5, retries=0) as client:
                    _wait(process, client, log)
            yield server
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def server_command(
    executable,
    folder,
    models,
    rest_port,
    grpc_port,
    timeout=30.0,
    poll_seconds=1,
    retries=0,
    retry_seconds=0,
    batching=None,
    check_methods=False,
    **of_all_models,
):
    """Returns the words that start the real server as ContractServer would start.

    Args:
        executable: str.
        folder: str or Path. Gets the files of settings.
        models, **of_all_models: As of `model_server`: `base_path`, `policy` and `labels`.
        rest_port, grpc_port: int.
        timeout, poll_seconds, retries, retry_seconds, batching, check_methods: As of ContractServer
            and ModelVersions. The server polls once a second at most.
    """
    config = MESSAGES["ModelServerConfig"]()
    for name, model in models.items():
        own = model if isinstance(model, dict) else {"base_path": model}
        own = {"policy": None, "labels": None, **of_all_models, **own}
        _describe(config.model_config_list.config.add(name=name), **own)
    words = [
        executable,
        f"--port={grpc_port}",
        f"--rest_api_port={rest_port}",
        f"--rest_api_timeout_in_ms={int(timeout * 1000)}",
        f"--model_config_file={_written(folder, 'models.config', config)}",
        f"--file_system_poll_wait_seconds={max(1, round(poll_seconds))}",
        f"--max_num_load_retries={retries}",
        f"--load_retry_interval_micros={int(retry_seconds * 1e6)}",
        "--allow_version_labels_for_unavailable_models=true",
    ]
    if check_methods:
        words.append("--enable_signature_method_name_check=true")
    if batching is not None:
        parameters = MESSAGES["BatchingParameters"](allowed_batch_sizes=batching[3])
        for field in ("max_batch_size", "batch_timeout_micros", "max_enqueued_batches"):
            getattr(parameters, field).value = getattr(batching, field)
        file = _written(folder, "batching.config", parameters)
        words += ["--enable_batching=true", f"--batching_parameters_file={file}"]
    return words


def free_ports(count):
    """Returns so many ports of loopback that nothing listens at."""
    with contextlib.ExitStack() as sockets:
        opened = [
            sockets.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(count)
        ]
        return [one.getsockname()[1] for one in opened]


def _describe(config, base_path, policy, labels):
    """Fills the ModelConfig of a model."""
    policy = policy or VersionPolicy()
    config.base_path, config.model_platform = str(Path(base_path).absolute()), "tensorflow"
    chosen = config.model_version_policy
    if policy.all:
        chosen.all.SetInParent()
    elif policy.specific:
        chosen.specific.versions.extend(policy.specific)
    else:
        chosen.latest.num_versions = policy.latest
    for label, version in (labels or {}).items():
        config.version_labels[label] = version


def _written(folder, name, message):
    path = Path(folder) / name
    path.write_text(text_format.MessageToString(message))
    return path


def _wait(process, client, log):
    """Waits until a version is AVAILABLE, or all there are have failed."""
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end:
        with contextlib.suppress(ServingError):
            states = {one.state for one in client.status()}
            if "AVAILABLE" in states or states == {"END"}:
                return
        if process.poll() is not None:
            break
        time.sleep(0.05)
    log.seek(0)
    raise RuntimeError(f"the server did not start: {log.read()[-2000:].decode(errors='replace')}")
