"""The checks of each request to a local server before anything of it is parsed.

Any page that is open in a browser can send requests to loopback. Without the check of `Host` and
`Origin`, it could use the computer, or read answers through a name that resolves to loopback (DNS
rebinding).

`curl --data` labels its body as a form unless a header says otherwise, and so do the tutorials of
the model server. A form of a foreign page sends the same label, but only a browser adds `Origin`,
`Referer` and `Sec-Fetch-*`, and calls itself Mozilla. A page cannot remove these headers.
"""

import ipaddress
import math
from collections.abc import Mapping

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from albert_keras.serving.local.limits import Limits, TokenBuckets
from data_pipeline.limits import is_too_deep

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
# Types of JSON that programs send, but that a form or a script of any page can send as well.
_FORM_TYPES = ("", "application/x-www-form-urlencoded", "text/plain")
_BROWSER_HEADERS = ("origin", "referer", "sec-fetch-site", "sec-fetch-mode", "sec-fetch-dest")
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


def is_loopback(host: str) -> bool:
    """Returns whether only this computer can reach a server that listens on a name or address."""
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_hosts(host: str) -> frozenset[str] | None:
    """Returns the names by which clients may address a server on `host`; None allows all."""
    if not is_loopback(host):
        return None  # it may have names that it does not know
    return frozenset((*_LOOPBACK_NAMES, f"[{host}]" if ":" in host else host.lower()))


class RequestChecks:
    """An ASGI application that passes on the requests to `app` that keep to the limits.

    It passes on the body in one message, and adds headers to all answers that forbid a browser to
    load anything from elsewhere or to store anything. `hosts` is from `allowed_hosts`.
    """

    def __init__(self, app, limits: Limits, hosts: frozenset[str] | None):
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
        if reason := _reason_to_refuse(method, headers, self._hosts):
            raise HTTPException(403, reason)
        wait = self._buckets.take((scope.get("client") or ("",))[0])
        if wait:
            raise HTTPException(429, "Too many requests.", {"Retry-After": str(math.ceil(wait))})
        if len(scope["raw_path"]) + len(scope["query_string"]) > limits.path_bytes:
            raise HTTPException(414, f"An address must have at most {limits.path_bytes} bytes.")
        # The connection counts a head that arrives in pieces; this one came in one packet.
        if _head_bytes(scope) > limits.head_bytes:
            raise HTTPException(431, f"A head must have at most {limits.head_bytes} bytes.")
        if "content-encoding" in headers:
            raise HTTPException(415, "Send the body uncompressed, without Content-Encoding.")
        if method == "POST" and not _may_be_json(headers):
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


def _head_bytes(scope):
    """Returns the size of the request line and the headers of a request, with their line ends."""
    line = len(f"{scope['method']}  HTTP/1.1\r\n") + len(scope["raw_path"])
    query = len(scope["query_string"])
    return line + query + sum(len(name) + len(value) + 4 for name, value in scope["headers"])


def _reason_to_refuse(method: str, headers: Mapping, hosts: frozenset[str] | None) -> str:
    """Returns why a request comes from neither a program nor the own page; "" if it does."""
    host = headers.get("host", "").lower()
    if hosts is not None and _without_port(host) not in hosts:
        return f"The header `Host` must be one of {', '.join(_LOOPBACK_NAMES)}."
    origin = headers.get("origin")
    if origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}"):
        return "Pages of other origins must not use this server."
    # Browsers that omit Origin from some requests send this; programs send neither.
    is_link = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not is_link:
        return "Pages of other sites must not use this server."
    return ""


def _may_be_json(headers):
    content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type == "application/json":
        return True  # a page of another origin cannot send it without asking the server first
    return content_type in _FORM_TYPES and not _is_from_browser(headers)


def _is_from_browser(headers):
    agent = headers.get("user-agent", "").lower()
    return agent.startswith("mozilla/") or any(name in headers for name in _BROWSER_HEADERS)


def _without_port(host):
    name, colon, port = host.rpartition(":")
    return name if colon and (port.isdigit() or not port) and not name.endswith(":") else host
