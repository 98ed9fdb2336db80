"""A persistent HTTP connection with a time-out and a size limit for answers."""

import http.client
import ssl
import urllib.parse
from typing import NamedTuple

from albert_keras.serving.client.client_errors import ServingError
from data_pipeline.errors import InputError


class Answer(NamedTuple):
    """An HTTP answer."""

    status: int
    body: bytes


class HttpConnection:
    """Sends requests to one server, one after another, and refuses longer answers than a limit.

    Raises:
        InputError: If the address is not like `http://127.0.0.1:8501`.
    """

    def __init__(self, url: str, max_message_bytes: int = 64 << 20):
        try:
            parts = urllib.parse.urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise InputError(f"`{url}` is not the address of a server: {error}.") from error
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise InputError(
                f"The address of a server must be like `http://127.0.0.1:8501`. Received: {url}."
            )
        self.url = url.rstrip("/")
        is_secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if is_secure else http.client.HTTPConnection
        self._connection = kind(parts.hostname, port)
        self._prefix = parts.path.rstrip("/")
        self._max_message_bytes = max_message_bytes

    def close(self):
        """Closes the connection; the next request opens another."""
        self._connection.close()

    def request(
        self, method: str, path: str, body: bytes | None = None, timeout: float = 30.0
    ) -> Answer:
        """Sends one HTTP request, without retries, and returns the answer, whatever its status.

        Args:
            method: "GET" or "POST".
            path: Starts with `/v1`.
            body: JSON.
            timeout: Seconds without any data after which the request fails.

        Raises:
            ServingError: If there is no answer, or it is too long.
        """
        try:
            return self._exchange(method, path, body, timeout)
        except (OSError, http.client.HTTPException) as error:
            self.close()
            code, message = "UNREADABLE", str(error) or type(error).__name__
            if isinstance(error, TimeoutError):
                code, message = "DEADLINE_EXCEEDED", f"no answer within {timeout:.3g} s"
            elif isinstance(error, ssl.SSLError):
                message = f"TLS failed, {error}"
            elif isinstance(error, OSError | http.client.IncompleteRead):
                code, message = "UNAVAILABLE", getattr(error, "strerror", None) or message
            raise ServingError(self.url + path, code, message, answered=False) from error

    def _exchange(self, method, path, body, timeout):
        headers = {} if body is None else {"Content-Type": "application/json"}
        self._connection.timeout = timeout
        if self._connection.sock is not None:
            self._connection.sock.settimeout(timeout)
        self._connection.request(method, self._prefix + path, body, headers)
        response = self._connection.getresponse()
        content = response.read(self._max_message_bytes + 1)
        if len(content) > self._max_message_bytes:
            self.close()
            limit = f"the answer is larger than max_message_bytes ({self._max_message_bytes})"
            raise ServingError(self.url + path, "RESOURCE_EXHAUSTED", limit)
        if response.length:  # bytes that are missing
            raise http.client.IncompleteRead(content, response.length)
        return Answer(response.status, content)
