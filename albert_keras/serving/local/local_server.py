"""A server of exported models for this computer: a page, and the REST routes of the model server.

serve(["saved_models/books"])
"""

import contextlib
import errno
import functools
import logging
import os
import socket
from collections.abc import Callable, Iterable
from pathlib import Path

import uvicorn

from albert_keras.serving.local.exported_versions import find_exports
from albert_keras.serving.local.limited_connection import LimitedConnection
from albert_keras.serving.local.limits import Limits
from albert_keras.serving.local.request_checks import allowed_hosts, is_loopback
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

#: Default address; the port is the one of `tensorflow_model_server`.
HOST, PORT = "127.0.0.1", 8501


class LocalServer:
    """Exported models behind an address. Use it in a `with` block.

    The arguments and errors are the same as for `serve`.

    Attributes:
        models: dict of name -> ServedModel.
        url: str. Address of the page, such as `http://127.0.0.1:8501/`.
    """

    def __init__(self, models, host=HOST, port=PORT, limits=None, access_log=False):
        limits = (limits or Limits()).check()
        exports = find_exports(models)
        self._socket = _listen(host, port)  # before models are loaded, as the port may be in use
        try:
            # These load TensorFlow.
            from albert_keras.serving.local.app import build_app
            from albert_keras.serving.local.served_models import ServedModel
            from albert_keras.training.distributed.strategy import describe_devices

            self.models = {}
            device = describe_devices()
            for export in exports:
                logger.info("loading %s, version %d, on %s", export.name, export.version, device)
                self.models[export.name] = ServedModel(export, limits)
                self.models[export.name].warm_up()
        except BaseException:
            self._socket.close()
            raise
        if not is_loopback(host):
            logger.warning(
                "Other computers can reach %s, but this server is intended for one computer. To "
                "serve other computers, see `albert-keras server-kit`.",
                host,
            )
        name = f"[{host}]" if ":" in host else host
        self.url = f"http://{name}:{self._socket.getsockname()[1]}/"
        config = uvicorn.Config(
            build_app(self.models, limits, allowed_hosts(host)),
            http=functools.partial(LimitedConnection, limits),
            loop="asyncio",
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="info" if access_log else "critical",
            access_log=access_log,
            proxy_headers=False,  # any client could claim another address
            server_header=False,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=limits.draining_seconds,
            h11_max_incomplete_event_size=limits.head_bytes,
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
        """Ends `run` after the answers in progress, or after `Limits.draining_seconds`.

        It may be called from any thread, and by a handler of signals.
        """
        self._server.should_exit = True


def serve(
    models: Iterable[str | Path],
    host: str = HOST,
    port: int = PORT,
    limits: Limits | None = None,
    access_log: bool = False,
    ready: Callable[[LocalServer], None] | None = None,
):
    """Serves exported models until the process is interrupted.

    A SavedModel is a program: its operations are checked before it is loaded.

    Args:
        models: Folders of exported models, whose newest version is served under the name of the
            folder, or folders of one version.
        host: Address to listen on. If it is not a loopback address, the `Host` of a request is not
            checked.
        port: 0 takes a free one.
        access_log: Whether to log each request, as `uvicorn.access`.
        ready: Called when the server listens.

    Raises:
        InputError: If there is no export, it uses operations that are not allowed, a name is not
            valid in an address or is given twice, or the address is in use or invalid.
    """
    with LocalServer(models, host, port, limits, access_log) as server:
        if ready is not None:
            ready(server)
        server.run()


class _Server(uvicorn.Server):
    """A uvicorn server that leaves signals to its caller."""

    def capture_signals(self):
        return contextlib.nullcontext()


def _listen(host, port):
    """Returns a socket that listens on an address."""
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
        raise InputError(f"`--port` must be an int from 0 to 65535. Received: {port!r}.")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        # If a name has both, every client tries IPv4.
        family, _, _, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
        is_ipv6 = family == socket.AF_INET6
        return socket.create_server(address, family=family, dualstack_ipv6=is_ipv6)
    except (OSError, UnicodeError) as error:
        if getattr(error, "errno", None) in (errno.EADDRINUSE, errno.EACCES):
            raise InputError(
                f"`--port` must be a free port that you may use. Received: {port} "
                f"({os.strerror(error.errno)}). Give another one, or 0 for any."
            ) from error
        raise InputError(
            f"`--host` must be an address of this computer, such as {HOST}. Received: {host!r}."
        ) from error
