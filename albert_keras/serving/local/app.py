"""The web application of a local server: its page, the list of models, and the REST routes.

POST /v1/models/NAME[/versions/N]:predict
GET  /v1/models/NAME[/versions/N][/metadata]
"""

import json
import logging
import mimetypes
import re
import urllib.parse
from collections.abc import Sequence

import anyio
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from albert_keras.serving.local.served_models import ServedModel
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

#: Maximum number of bytes of the body of a request.
MAX_BODY_BYTES = 1 << 20
#: Requests in TensorFlow at a time; others wait.
_AT_A_TIME = 2
_ROUTE = re.compile(
    r"/v1/models/(?P<model>[^/:]+)(?:/versions/(?P<version>\d{1,19}))?"
    r"(?:(?P<method>:predict)|(?P<part>/metadata))?",
    re.A,
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


def build_app(models: dict[str, ServedModel], hosts: Sequence[str]) -> Starlette:
    """Returns the ASGI application; `hosts` are the names by which clients may address it."""
    descriptions = [model.describe() for model in models.values()]
    page = _Page(packages=[("albert_keras.serving.local", "page")])
    at_a_time = anyio.CapacityLimiter(_AT_A_TIME)

    async def index(request):
        return await page.get_response("index.html", request.scope)

    async def list_models(request):
        return JSONResponse(descriptions, headers=_HEADERS)

    async def rest(request):
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY_BYTES:
                limit = f"A body must have at most {MAX_BODY_BYTES} bytes."
                raise HTTPException(413, limit, {"Connection": "close"})
        path = request.scope["raw_path"].decode("ascii")
        route = _ROUTE.fullmatch(path.partition("?")[0])
        if not route or bool(route["method"]) != (request.method == "POST"):
            raise InputError(f"{request.method} {path} is not a route of this server.")
        # In a thread, so that other requests are answered meanwhile.
        call = anyio.to_thread.run_sync
        answer = await call(_answer, models, route, body, limiter=at_a_time)
        return Response(answer, media_type="application/json", headers=_HEADERS)

    app = Starlette(
        routes=[
            Route("/", index),
            Mount("/page", page),
            Route("/models.json", list_models),
            Route("/v1/{path:path}", rest, methods=["GET", "POST"]),
        ],
        middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=list(hosts))],
        exception_handlers={
            HTTPException: lambda request, error: _error(
                error.detail, error.status_code, error.headers
            ),
            InputError: lambda request, error: _error(str(error)[:1024], 400),
            Exception: _internal_error,
        },
    )
    app.router.redirect_slashes = False
    return app


class _Page(StaticFiles):
    def file_response(self, *args, **kwargs):
        response = super().file_response(*args, **kwargs)
        response.headers.update(_HEADERS)
        return response


def _answer(models, route, body):
    """Returns the JSON of the answer to a request."""
    name = urllib.parse.unquote(route["model"])
    if name not in models:
        raise HTTPException(404, f"This server has no model `{name}`.")
    model = models[name]
    if route["version"] and int(route["version"]) >= 2**63:
        raise InputError(f"A version must be less than 2^63. Received: {route['version']}.")
    if route["version"] and int(route["version"]) != model.version:
        raise HTTPException(404, f"The model `{name}` has no version {route['version']} here.")
    if route["method"]:
        return model.answer(body)
    if route["part"]:
        spec = {"name": name, "signature_name": "", "version": str(model.version)}
        metadata = {"signature_def": {"signature_def": model.definitions}}
        return json.dumps({"model_spec": spec, "metadata": metadata})
    status = {"error_code": "OK", "error_message": ""}
    entry = {"version": str(model.version), "state": "AVAILABLE", "status": status}
    return json.dumps({"model_version_status": [entry]})


def _error(message, status, headers=None):
    return JSONResponse({"error": message}, status, headers)


def _internal_error(request, error):
    logger.error("internal error: %s: %s", type(error).__name__, error)
    return _error("Internal error. See the log of the server.", 500)
