"""A server of exported models for this computer: a page, and REST routes of the model server."""

import contextlib
import logging
import socket
from collections.abc import Iterable
from pathlib import Path

import uvicorn

from albert_keras.serving.layout import (
    check_model_name,
    existing_versions,
    models_in,
    split_version,
    versions,
)
from albert_keras.shipped_models import find_model
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

#: Default address; the port is the one of `tensorflow_model_server`.
HOST, PORT = "127.0.0.1", 8501
#: Names by which clients address a server that other computers cannot reach.
_LOCAL_NAMES = ("127.0.0.1", "localhost")
#: Seconds for the answers in progress when the server is stopped.
DRAINING_SECONDS = 10


class LocalServer:
    """Exported models behind an address. Use it in a `with` block.

    A SavedModel is a program: its operations are checked before it is loaded.

    Args:
        models: Folders of exported models, whose newest version is served under the name of the
            folder, folders of one version, names of shipped models, or folders of several models.
        host: Address to listen on.
        port: 0 takes a free one.
        access_log: Whether to log each request, as `uvicorn.access`.

    Attributes:
        models: dict of name -> ServedModel.
        url: str. Address of the page, such as `http://127.0.0.1:8501/`.

    Raises:
        InputError: If there is no export, it uses operations that are not allowed, a name is not
            valid in an address or is given twice, or the address is in use or invalid.
    """

    def __init__(
        self,
        models: Iterable[str | Path],
        host: str = HOST,
        port: int = PORT,
        access_log: bool = False,
    ):
        folders = find_exports(models)
        self._socket = _listen(host, port)  # before models are loaded, as the port may be in use
        try:
            # These load TensorFlow.
            from albert_keras.serving.local.app import build_app
            from albert_keras.serving.local.served_models import ServedModel

            self.models = {}
            for name, folder in folders.items():
                logger.info("loading %s, version %s", name, folder.name)
                self.models[name] = ServedModel(name, folder)
        except BaseException:
            self._socket.close()
            raise
        is_local = host in _LOCAL_NAMES
        if not is_local:
            logger.warning(
                "Other computers can reach %s, but this server is intended for one computer. To "
                "serve other computers, see `albert-keras server-kit`.",
                host,
            )
        name = f"[{host}]" if ":" in host else host
        self.url = f"http://{name}:{self._socket.getsockname()[1]}/"
        config = uvicorn.Config(
            build_app(self.models, _LOCAL_NAMES if is_local else ("*",)),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="info" if access_log else "critical",
            access_log=access_log,
            server_header=False,
            timeout_graceful_shutdown=DRAINING_SECONDS,
        )
        self._server = _Server(config)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    @property
    def is_ready(self):
        """bool. Whether the server answers requests."""
        return self._server.started

    def run(self):
        """Answers requests until `stop` is called or the process is interrupted."""
        self._server.run(sockets=[self._socket])

    def stop(self):
        """Ends `run` after the answers in progress, or after `DRAINING_SECONDS`.

        It may be called from any thread, and by a handler of signals.
        """
        self._server.should_exit = True


def find_exports(models: Iterable[str | Path]) -> dict[str, Path]:
    """Finds the folders of the versions to serve, by the name of the model; see `LocalServer`."""
    found: dict[str, Path] = {}
    for path in map(find_model, models):
        is_one = versions(path) or (Path(path) / "saved_model.pb").is_file()
        for one in [path] if is_one else models_in(path) or [path]:
            folder, version = split_version(one)
            version = existing_versions(one)[-1] if version is None else version
            name = check_model_name(folder.name)
            if name in found:
                raise InputError(
                    f"Models must have different names. Received: `{found[name]}` and "
                    f"`{folder / str(version)}`. Copy one of them to a folder with another name."
                )
            found[name] = folder / str(version)
    if not found:
        raise InputError("Give at least one model to serve. Received: none.")
    return found


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals to its caller."""

    def capture_signals(self):
        return contextlib.nullcontext()


def _listen(host, port):
    """Returns a socket that listens on an address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError, UnicodeError) as error:
        raise InputError(
            f"`--host` must be an address of this computer, such as {HOST}, and `--port` a free "
            f"port that you may use, or 0 for any. Received: {host} and {port} ({error})."
        ) from error
