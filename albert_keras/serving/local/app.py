"""The web application of a local server: its page, what models there are, and their REST paths."""

import asyncio
import logging
import re
from importlib.resources import files

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from albert_keras.serving.local.gate import Gate
from albert_keras.serving.protocol import routes

logger = logging.getLogger(__name__)

_PAGE = "albert_keras.serving.local"
_FILE = re.compile(r"[A-Za-z0-9_-]+\.([a-z0-9]+)")
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "json": "application/json",
    "svg": "image/svg+xml",
    "png": "image/png",
    "ico": "image/x-icon",
}


def build_app(models, limits, hosts):
    """Returns the ASGI application.

    Args:
        models: dict of name -> ServedModel.
        limits: Limits.
        hosts: frozenset of str or None. Names of the server, see `origins.allowed_hosts`.
    """
    listing = [model.describe() for model in models.values()]

    async def index(request):
        return _page_file("index.html")

    async def page(request):
        return _page_file(request.path_params["file"])

    async def list_models(request):
        return JSONResponse(listing)

    app = Starlette(
        routes=[
            Route("/", index),
            Route("/page/{file}", page),
            Route("/models.json", list_models),
            Route("/v1/{rest:path}", _Answers(models, limits).answer, methods=["GET", "POST"]),
        ],
        exception_handlers={HTTPException: _http_error, Exception: _fault},
    )
    app.router.redirect_slashes = False
    return Gate(app, limits, hosts)


class _Answers:
    """Answers of the REST interface. TensorFlow works in threads, so that others are answered."""

    def __init__(self, models, limits):
        self._models, self._seconds = models, limits.waiting_seconds
        self._places = asyncio.Semaphore(limits.computed_at_once)

    async def answer(self, request):
        path = request.scope["raw_path"].decode("ascii")
        if request.method != "POST":
            return _json(*routes.answer(self._models, "GET", path, b""))
        body = await request.body()
        try:
            with anyio.fail_after(self._seconds):
                await self._places.acquire()
        except TimeoutError:
            busy = {"error": "The server is busy with other requests."}
            return JSONResponse(busy, 503, {"Retry-After": "1"})
        try:
            found = await anyio.to_thread.run_sync(routes.answer, self._models, "POST", path, body)
        finally:
            self._places.release()
        return _json(*found)


def _json(status, body):
    if not body:
        raise HTTPException(status)
    return Response(body, status, media_type="application/json")


def _page_file(name):
    match = _FILE.fullmatch(name)
    file = files(_PAGE).joinpath("page", name)
    if match is None or match[1] not in _TYPES or not file.is_file():
        raise HTTPException(404)
    return Response(file.read_bytes(), media_type=_TYPES[match[1]])


def _http_error(request, error):
    said = {404: "There is nothing here.", 405: "This method is not taken here."}
    message = said.get(error.status_code, error.detail)
    return JSONResponse({"error": message}, error.status_code, error.headers)


def _fault(request, error):
    logger.error("internal error: %s: %s", type(error).__name__, error)
    return JSONResponse({"error": "The server has a fault; its log tells more."}, 500)
