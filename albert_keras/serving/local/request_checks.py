"""The checks of each request to a local server before anything of it is parsed."""

import math

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from albert_keras.serving.local.host_and_origin import is_json, reason_to_refuse
from albert_keras.serving.local.limits import TokenBuckets, is_too_deep

_SECURITY_HEADERS = [
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
# Clients that send the whole body before they read would otherwise get a reset, not the answer.
_MAX_DISCARDED_BYTES = 8 << 20
_DISCARDING_SECONDS = 2.0


class RequestChecks:
    """An ASGI application that passes on the requests that keep to the limits.

    It passes on the body in one message, and adds headers to all answers that forbid a browser to
    load anything from elsewhere or to store anything.

    Args:
        app: ASGI application.
        limits: Limits.
        hosts: frozenset of str or None. Names of the server; None allows all.
    """

    def __init__(self, app, limits, hosts):
        self._app, self._limits, self._hosts = app, limits, hosts
        self._buckets = TokenBuckets(limits.requests_per_second, limits.burst)
        self._too_large = f"A body must have at most {limits.body_bytes} bytes."

    async def __call__(self, scope, receive, send):
        async def send_with_headers(message):
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *_SECURITY_HEADERS]}
            await send(message)

        try:
            try:
                self._check_head(scope)
            except HTTPException:
                await _discard_body(receive)
                raise
            body = await self._read_body(receive)
        except HTTPException as error:
            headers = {"Connection": "close", **(error.headers or {})}
            refusal = JSONResponse({"error": error.detail}, error.status_code, headers)
            await refusal(scope, receive, send_with_headers)
            return
        if body is None:
            return
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_body():
            return messages.pop() if messages else await receive()

        await self._app(scope, receive_body, send_with_headers)

    def _check_head(self, scope):
        method, headers, limits = scope["method"], Headers(scope=scope), self._limits
        if reason := reason_to_refuse(method, headers, self._hosts):
            raise HTTPException(403, reason)
        wait = self._buckets.take((scope.get("client") or ("",))[0])
        if wait:
            raise HTTPException(429, "Too many requests.", {"Retry-After": str(math.ceil(wait))})
        if len(scope["raw_path"]) + len(scope["query_string"]) > limits.path_bytes:
            raise HTTPException(414, f"An address must have at most {limits.path_bytes} bytes.")
        if "content-encoding" in headers:
            raise HTTPException(415, "Send the body as it is, without Content-Encoding.")
        if method == "POST" and not is_json(headers.get("content-type", "")):
            raise HTTPException(415, "Send JSON with the header `Content-Type: application/json`.")
        if int(headers.get("content-length", 0)) > limits.body_bytes:
            raise HTTPException(413, self._too_large)

    async def _read_body(self, receive):
        """Returns the body of a request, None if the client has closed the connection."""
        limits = self._limits
        parts, size, has_more = [], 0, True
        try:
            with anyio.fail_after(limits.receiving_seconds):
                while has_more and size <= limits.body_bytes:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    has_more = message.get("more_body", False)
        except TimeoutError as error:
            limit = f"The body must arrive within {limits.receiving_seconds:g} seconds."
            raise HTTPException(408, limit) from error
        if size > limits.body_bytes:
            if has_more:
                await _discard_body(receive)
            raise HTTPException(413, self._too_large)
        body = b"".join(parts)
        if await anyio.to_thread.run_sync(is_too_deep, body, limits.json_depth):
            raise HTTPException(400, f"JSON must be nested at most {limits.json_depth} deep.")
        return body


async def _discard_body(receive):
    """Reads and discards what a client still sends, within limits."""
    size = 0
    with anyio.move_on_after(_DISCARDING_SECONDS):
        while size < _MAX_DISCARDED_BYTES:
            message = await receive()
            size += len(message.get("body", b""))
            if message["type"] == "http.disconnect" or not message.get("more_body"):
                break
