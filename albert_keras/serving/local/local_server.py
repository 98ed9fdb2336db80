"""A server of exported models for this computer: a page, and REST routes of the model server."""

import ipaddress
import json
import logging
import mimetypes
import re
import socket
from collections.abc import Iterable
from pathlib import Path

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from albert_keras.formats.detection import find, versions
from albert_keras.serving.layout import check_model_name, split_version
from albert_keras.shipped_models import find_model
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

#: Default address; the port is the one of `tensorflow_model_server`.
HOST, PORT = "127.0.0.1", 8501
#: Seconds for the answers in progress when the server is stopped.
_DRAINING_SECONDS = 10
#: Maximum number of bytes of the body of a request.
MAX_BODY_BYTES = 1 << 20
#: Connections at a time, fewer than the files that a process may open on any system.
_MAX_CONNECTIONS = 128
#: Header of an answer to a request that is not read to its end.
_CLOSE = {"Connection": "close"}
#: Requests in TensorFlow at a time; others wait.
_AT_A_TIME = 2
_ROUTE = re.compile(
    r"/v1/models/(?P<model>[^/:]+)(?:/versions/(?P<version>\d{1,19}))?"
    r"(?P<part>:predict|/metadata)?",
    re.A,
)
_ROUTES = (
    "GET /v1/models/NAME[/versions/N]",
    "GET /v1/models/NAME[/versions/N]/metadata",
    "POST /v1/models/NAME[/versions/N]:predict",
)
#: The page loads nothing from elsewhere.
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}

# Some systems map it to another type, with which browsers refuse to run the scripts.
mimetypes.add_type("text/javascript", ".js")


class LocalServer(uvicorn.Server):
    """Exported models behind an address. Use it in a `with` block.

    A SavedModel is a program: its operations are checked before it is loaded.

    Args:
        models: Folders of exported models, whose newest version is served under the name of the
            folder, folders of one version, names of shipped models, or folders of several models.
        host: IP address to listen on.
        port: 0 takes a free one.
        access_log: Whether to log each request, as `uvicorn.access`.
        allow_host: Names besides its own address by which clients may address the server. It
            answers no request for another name, which may be that of a page of another site.
            `0.0.0.0` and `::` are no names, and need at least one.

    Attributes:
        models: dict of name -> ServedModel.
        url: str. Address of the page, such as `http://127.0.0.1:8501/`.
        started: bool. Whether the server answers requests.

    Raises:
        InputError: If there is no export, it uses operations that are not allowed, a name is not
            valid in an address or is given twice, or an address is in use, invalid or has no name.
    """

    def __init__(
        self,
        models: Iterable[str | Path],
        host: str = HOST,
        port: int = PORT,
        access_log: bool = False,
        allow_host: Iterable[str] = (),
    ):
        names = _names_of(host, allow_host)
        folders = find_exports(models)
        self._socket = _listen(host, port)  # before models are loaded, as the port may be in use
        try:
            from albert_keras.serving.local.served_models import ServedModel  # loads TensorFlow

            self.models = {}
            for name, folder in folders.items():
                logger.info("loading %s, version %s", name, folder.name)
                self.models[name] = ServedModel(name, folder)
        except BaseException:
            self._socket.close()
            raise
        if not ipaddress.ip_address(host).is_loopback:
            logger.warning(
                "Other computers can reach this server, which is intended for one computer. To "
                "serve other computers, see `albert-keras server-kit`."
            )
        self.url = f"http://{names[0]}:{self._socket.getsockname()[1]}/"
        config = uvicorn.Config(
            _build_app(self.models, names),
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="info" if access_log else "critical",
            access_log=access_log,
            server_header=False,
            timeout_graceful_shutdown=_DRAINING_SECONDS,
            limit_concurrency=_MAX_CONNECTIONS,
        )
        super().__init__(config)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._socket.close()

    def run(self, sockets=None):
        """Answers requests until `stop` is called, or SIGINT or SIGTERM ends the process."""
        super().run(sockets or [self._socket])

    def stop(self):
        """Ends `run` after the answers in progress, or after ten seconds; from any thread."""
        self.should_exit = True


def find_exports(models: Iterable[str | Path]) -> dict[str, Path]:
    """Finds the folders of the versions to serve, by the name of the model; see `LocalServer`."""
    found: dict[str, Path] = {}
    for path in map(find_model, models):
        is_one = not path.is_dir() or find(path)
        for one in [path] if is_one else sorted(filter(versions, path.iterdir())) or [path]:
            folder, version = split_version(one)
            version = versions(folder)[-1] if version is None else version
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


def _names_of(host, others):
    """Returns the names by which clients may address a server, the one of its page first."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError as error:
        raise InputError(
            f"`host` must be an IP address, such as {HOST}. Received: {host}."
        ) from error
    names = []
    if not address.is_unspecified:
        names.append(f"[{address}]" if address.version == 6 else str(address))
    if host == HOST:
        names.append("localhost")
    for name in others:
        if not re.fullmatch(r"[\w.-]+|\[[\da-fA-F:.]+\]", name, re.A):
            raise InputError(
                "`allow_host` must be names or addresses without a port, such as `box.example` or "
                f"`[fd00::5]`. Received: {name}."
            )
        names.append(name)
    if not names:
        raise InputError(
            f"A server at {host} answers requests for the names in `allow_host` alone, such as "
            "`box.example`. Received: none."
        )
    return [name.lower() for name in names]


def _listen(host, port):
    """Returns a socket that listens on an address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError, UnicodeError) as error:
        raise InputError(
            f"`host` must be an address of this computer, such as {HOST}, and `port` a free "
            f"port that you may use, or 0 for any. Received: {host} and {port} ({error})."
        ) from error


def _build_app(models, names):
    """Returns the ASGI application; `names` are those by which clients may address it."""
    descriptions = [model.describe() for model in models.values()]
    page = _Page(packages=[("albert_keras.serving.local", "page")])
    at_a_time = anyio.CapacityLimiter(_AT_A_TIME)

    async def index(request):
        return await page.get_response("index.html", request.scope)

    async def list_models(request):
        return JSONResponse(descriptions, headers=_HEADERS)

    async def rest(request):
        _check_sender(request)
        body = await _read_body(request)
        path = request.scope["raw_path"].decode("ascii")
        route = _ROUTE.fullmatch(path.partition("?")[0])
        if not route or (route["part"] == ":predict") != (request.method == "POST"):
            rest = f"It has: {', '.join(_ROUTES)}."
            raise InputError(f"{request.method} {path} is not a route of this server. {rest}")
        # In a thread, so that other requests are answered meanwhile.
        call = anyio.to_thread.run_sync
        limits = {"abandon_on_cancel": True, "limiter": at_a_time}
        answer = await call(_answer, models, route, body, **limits)
        return Response(answer, media_type="application/json", headers=_HEADERS)

    app = Starlette(
        routes=[
            Route("/", index),
            Mount("/page", page),
            Route("/models.json", list_models),
            Route("/v1/{path:path}", rest, methods=["GET", "POST"]),
        ],
        middleware=[Middleware(_KnownHost, names=names)],
        exception_handlers={
            HTTPException: lambda request, error: _error(
                error.detail, error.status_code, error.headers
            ),
            InputError: lambda request, error: _error(str(error)[:1024], 400),
            ClientDisconnect: lambda request, error: _error("The body is incomplete.", 400),
            Exception: _internal_error,
        },
    )
    app.router.redirect_slashes = False
    return app


def _check_sender(request):
    """Refuses what pages of other sites can send: a browser says where a request comes from."""
    origin = request.headers.get("origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("host"):
        raise HTTPException(403, f"Pages of {origin[:200]} must not send requests here.", _CLOSE)
    kind = request.headers.get("content-type", "")
    if request.method == "POST" and kind.partition(";")[0].strip().lower() != "application/json":
        rule = "The header `Content-Type` of a request must be `application/json`."
        raise HTTPException(415, f"{rule} Received: {kind[:200] or 'none'}.", _CLOSE)


async def _read_body(request):
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY_BYTES:
            limit = f"A body must have at most {MAX_BODY_BYTES} bytes."
            raise HTTPException(413, limit, _CLOSE)
    return body


class _KnownHost:
    """Refuses requests for other names: a page of another site may bind its own to this address."""

    def __init__(self, app, names):
        self._app, self._names = app, names

    async def __call__(self, scope, receive, send):
        host = Headers(scope=scope).get("host", "")
        app = self._app
        if re.sub(r":\d*$", "", host).lower() not in self._names:
            rule = f"This server is addressed by {' or '.join(self._names)}"
            app = _error(f"{rule}; `allow_host` adds names. Received: {host[:200]}.", 400)
        await app(scope, receive, send)


class _Page(StaticFiles):
    def file_response(self, *args, **kwargs):
        response = super().file_response(*args, **kwargs)
        response.headers.update(_HEADERS)
        return response


def _answer(models, route, body):
    """Returns the JSON of the answer to a request."""
    name = route["model"]
    model = models.get(name)
    if model is None:
        raise HTTPException(404, f"This server has no model `{name}`.")
    if route["version"] and int(route["version"]) != model.version:
        raise HTTPException(404, f"The model `{name}` has no version {route['version']} here.")
    if route["part"] == ":predict":
        return model.answer(body)
    if route["part"]:
        spec = {"name": name, "signature_name": "", "version": str(model.version)}
        metadata = {"signature_def": {"signature_def": model.definitions}}
        return json.dumps({"model_spec": spec, "metadata": metadata})
    status = {"error_code": "OK", "error_message": ""}
    entry = {"version": str(model.version), "state": "AVAILABLE", "status": status}
    return json.dumps({"model_version_status": [entry]})


def _error(message, status, headers=None):
    # A request may have halves of surrogate pairs, which no answer can have.
    message = message.encode(errors="backslashreplace").decode()
    return JSONResponse({"error": message}, status, headers)


def _internal_error(request, error):
    logger.error("internal error: %s: %s", type(error).__name__, error)
    return _error("Internal error. See the log of the server.", 500)
