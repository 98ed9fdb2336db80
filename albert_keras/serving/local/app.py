"""The web application of a local server: its page, the list of models, and the REST routes."""

import asyncio
import logging
import mimetypes

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from albert_keras.serving.local.limits import Limits
from albert_keras.serving.local.request_checks import RequestChecks
from albert_keras.serving.local.served_models import ServedModel
from albert_keras.serving.protocol import rest_routes

logger = logging.getLogger(__name__)

# Some systems map it to another type, with which browsers refuse to run the scripts.
mimetypes.add_type("text/javascript", ".js")


def build_app(
    models: dict[str, ServedModel], limits: Limits, hosts: frozenset[str] | None
) -> RequestChecks:
    """Returns the ASGI application; `hosts` is from `allowed_hosts`."""
    descriptions = [model.describe() for model in models.values()]
    page = _Page(packages=[("albert_keras.serving.local", "page")])

    async def index(request):
        return await page.get_response("index.html", request.scope)

    async def list_models(request):
        return JSONResponse(descriptions)

    slots = asyncio.Semaphore(limits.computed_at_once)

    async def rest(request):
        path = request.scope["raw_path"].decode("ascii")
        if request.method != "POST":
            return _rest_response(*rest_routes.answer(models, "GET", path, b""))
        body = await request.body()
        try:
            with anyio.fail_after(limits.waiting_seconds):
                await slots.acquire()
        except TimeoutError:
            busy = {"error": "The server is busy with other requests."}
            return JSONResponse(busy, 503, {"Retry-After": "1"})
        try:  # in a thread, so that other requests are answered meanwhile
            answer = await anyio.to_thread.run_sync(rest_routes.answer, models, "POST", path, body)
        finally:
            slots.release()
        return _rest_response(*answer)

    app = Starlette(
        routes=[
            Route("/", index),
            Mount("/page", page),
            Route("/models.json", list_models),
            Route("/v1/{path:path}", rest, methods=["GET", "POST"]),
        ],
        exception_handlers={HTTPException: _http_error, Exception: _internal_error},
    )
    app.router.redirect_slashes = False
    return RequestChecks(app, limits, hosts)


class _Page(StaticFiles):
    """The files of the page; a name that no file can have is an address that does not exist."""

    def lookup_path(self, path):
        try:
            return super().lookup_path(path)
        except (OSError, ValueError):  # too long, or with a NUL; not all releases check this
            return "", None


def _rest_response(status, body):
    if not body:
        raise HTTPException(status)
    return Response(body, status, media_type="application/json")


def _http_error(request, error):
    messages = {404: "This address does not exist.", 405: "This method is not allowed here."}
    message = messages.get(error.status_code, error.detail)
    return JSONResponse({"error": message}, error.status_code, error.headers)


def _internal_error(request, error):
    logger.error("internal error: %s: %s", type(error).__name__, error)
    return JSONResponse({"error": "Internal error. See the log of the server."}, 500)
