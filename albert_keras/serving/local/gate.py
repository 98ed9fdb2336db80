"""What stands before a local server: checks each request before anything of it is parsed."""

import json
import math

import anyio

from albert_keras.serving.local.limits import TokenBuckets, is_too_deep
from albert_keras.serving.local.origins import is_json, stranger

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
# Clients that send a body before they listen would else see a reset instead of the answer.
_DRAINED_BYTES = 8 << 20
_DRAINING_SECONDS = 2.0


class Refused(Exception):
    """A request that is not answered.

    Args:
        status: int. Of HTTP.
        message: str.
        headers: list of (bytes, bytes).
        has_more: bool. Whether the client may still be sending.
    """

    def __init__(self, status, message, headers=(), has_more=False):
        super().__init__(message)
        self.status, self.message, self.headers = status, message, list(headers)
        self.has_more = has_more


class Gate:
    """An ASGI application that lets through to another what keeps to the limits.

    What is let through has its body whole, one message. All answers get the headers that tell a
    browser to load nothing from elsewhere and to keep nothing.

    Args:
        app: ASGI application.
        limits: Limits.
        hosts: frozenset of str or None. Names of the server; None allows all.
    """

    def __init__(self, app, limits, hosts):
        self._app, self._limits, self._hosts = app, limits, hosts
        self._buckets = TokenBuckets(limits.requests_per_second, limits.burst)

    async def __call__(self, scope, receive, send):
        async def send_guarded(message):
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *_SECURITY_HEADERS]}
            await send(message)

        try:
            self._check_head(scope)
            body = await self._read(receive)
        except Refused as refused:
            await _refuse(refused, receive, send_guarded)
            return
        if body is None:
            return  # nobody is there any more
        messages = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_body():
            return messages.pop() if messages else await receive()

        await self._app(scope, receive_body, send_guarded)

    def _check_head(self, scope):
        method, limits = scope["method"], self._limits
        headers = {
            name.decode("latin-1"): text.decode("latin-1") for name, text in scope["headers"]
        }
        length = int(headers.get("content-length", 0))
        has_body = length > 0 or "transfer-encoding" in headers
        if reason := stranger(method, headers, self._hosts):
            raise Refused(403, reason, has_more=has_body)
        wait = self._buckets.take((scope.get("client") or ("",))[0])
        if wait:
            retry = (b"retry-after", str(math.ceil(wait)).encode())
            raise Refused(429, "Too many requests.", [retry], has_body)
        if len(scope["raw_path"]) + len(scope["query_string"]) > limits.path_bytes:
            message = f"An address should have at most {limits.path_bytes} bytes."
            raise Refused(414, message, has_more=has_body)
        if "content-encoding" in headers:
            message = "Content-Encoding is not taken; send the body as it is."
            raise Refused(415, message, has_more=has_body)
        if method == "POST" and not is_json(headers.get("content-type", "")):
            message = "Send JSON with the header `Content-Type: application/json`."
            raise Refused(415, message, has_more=has_body)
        if length > limits.body_bytes:
            raise self._too_large()

    async def _read(self, receive):
        """Returns the body of a request, None if the client has gone; else raises Refused."""
        parts, size, has_more = [], 0, True
        try:
            with anyio.fail_after(self._limits.receiving_seconds):
                while has_more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    has_more = message.get("more_body", False)
                    if size > self._limits.body_bytes:
                        raise self._too_large(has_more)
        except TimeoutError as error:
            seconds = self._limits.receiving_seconds
            close = [(b"connection", b"close")]
            message = f"The body should have come within {seconds:g} seconds."
            raise Refused(408, message, close) from error
        body, depth = b"".join(parts), self._limits.json_depth
        if await anyio.to_thread.run_sync(is_too_deep, body, depth):
            raise Refused(400, f"JSON should be nested at most {depth} deep.")
        return body

    def _too_large(self, has_more=True):
        limit = self._limits.body_bytes
        return Refused(413, f"A body should have at most {limit} bytes.", has_more=has_more)


async def _refuse(refused, receive, send):
    content = json.dumps({"error": refused.message}).encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(content)).encode()),
        *refused.headers,
    ]
    if refused.has_more:
        headers.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": refused.status, "headers": headers})
    await send({"type": "http.response.body", "body": content, "more_body": refused.has_more})
    if refused.has_more:
        await _drain(receive)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _drain(receive):
    """Throws away what a client still sends, within limits."""
    size = 0
    with anyio.move_on_after(_DRAINING_SECONDS):
        while size < _DRAINED_BYTES:
            message = await receive()
            size += len(message.get("body", b""))
            if message["type"] == "http.disconnect" or not message.get("more_body"):
                break
