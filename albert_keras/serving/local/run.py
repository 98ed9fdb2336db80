"""Serves exported models on this computer, with the REST interface of the model server and a page.

serve(["saved_models/books"])
"""

import contextlib
import errno
import functools
import logging
import socket

import uvicorn

from albert_keras.serving.local.connections import LimitedConnection
from albert_keras.serving.local.exported_versions import find_exports
from albert_keras.serving.local.limits import Limits
from albert_keras.serving.local.origins import allowed_hosts, is_loopback
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

#: Where models are served if nobody says otherwise, as by `tensorflow_model_server`.
HOST, PORT = "127.0.0.1", 8501
_HEAD_BYTES = 16 << 10


class LocalServer:
    """Models behind an address. Use it in a `with` block.

    Args: as of `serve`; its errors, too.

    Attributes:
        models: dict of name -> ServedModel.
        url: str. Of the page, such as `http://127.0.0.1:8501/`.
    """

    def __init__(self, models, host=HOST, port=PORT, limits=None, access_log=False):
        limits = (limits or Limits()).check()
        exports = find_exports(models)
        self._socket = _bind(host, port)  # a port that is taken is told before models are loaded
        try:
            from albert_keras.serving.local.app import build_app  # loads TensorFlow

            self.models = {export.name: _load(export, limits) for export in exports}
            _listen(self._socket, host, port)
        except BaseException:
            self._socket.close()
            raise
        if not is_loopback(host):
            logger.warning(
                "%s is reached by other computers, and this server is made for one: for more, see "
                "`albert-keras server-kit`",
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
            proxy_headers=False,  # anyone on loopback could name another address
            server_header=False,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=1,
            h11_max_incomplete_event_size=_HEAD_BYTES,
        )
        self._server = _Server(config)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    @property
    def is_ready(self):
        """bool. Whether requests are answered now."""
        return self._server.started

    def run(self):
        """Answers until `stop`; KeyboardInterrupt where the process gets one."""
        self._server.run(sockets=[self._socket])

    def stop(self):
        """Ends `run`, from any thread, when the answers that are being made are sent."""
        self._server.should_exit = True


def serve(models, host=HOST, port=PORT, limits=None, access_log=False, ready=None):
    """Serves exported models until the process is interrupted.

    A SavedModel is a program: its operations are checked before it is loaded.

    Args:
        models: iterable of str or Path. Each the folder of an exported model, whose name is that of
            the model and whose newest version is taken, or that of one version.
        host: str. Address to listen on. With another than one of loopback, requests may call the
            server by any name.
        port: int. 0 takes one that is free.
        limits: Limits or None.
        access_log: bool. Log each request, as `uvicorn.access`.
        ready: function or None. Called with the LocalServer when it listens.

    Raises:
        InputError: If there is no export, it uses operations that are not allowed, a name cannot
            stand in an address or is given twice, or the address is taken or none.
    """
    with LocalServer(models, host, port, limits, access_log) as server:
        if ready is not None:
            ready(server)
        server.run()


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs it."""

    def capture_signals(self):
        return contextlib.nullcontext()


def _load(export, limits):
    logger.info("loading %s, version %d", export.name, export.version)
    from albert_keras.serving.local.served_models import ServedModel

    model = ServedModel(export, limits)
    model.warm_up()
    return model


def _bind(host, port):
    """Returns a socket that is bound, and refuses connections yet."""
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port < 65536:
        raise InputError(f"`--port` should be from 0 to 65535. Received: {port!r}.")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise _wrong_host(host) from error
    # Of a name with both, clients try IPv4 in any case.
    family, kind, protocol, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
    except OSError as error:
        bound.close()
        raise _no_address(error, host, port) from error
    return bound


def _listen(bound, host, port):
    try:
        bound.listen()
    except OSError as error:  # another program was quicker
        raise _no_address(error, host, port) from error


def _no_address(error, host, port):
    if error.errno == errno.EADDRNOTAVAIL:
        return _wrong_host(host)
    return InputError(
        f"`--port` should be one that is free and may be used, 0 takes any. Received: {port} "
        f"({error.strerror})."
    )


def _wrong_host(host):
    return InputError(
        f"`--host` should be an address of this computer, such as {HOST}. Received: {host!r}."
    )
