"""A persistent HTTP connection with a time-out and a size limit for answers."""

import http.client
import ssl
import urllib.parse
from typing import NamedTuple

from albert_keras.serving.client.client_errors import ServingError
from data_pipeline.errors import InputError


class Answer(NamedTuple):
    """An HTTP answer: `status` int and `body` bytes."""

    status: int
    body: bytes


class HttpConnection:
    """Sends requests to one server, one after another.

    Args:
        url: str. Address of the server, such as `http://127.0.0.1:8501`.
        timeout: float. Seconds without any data after which a request fails.
        max_message_bytes: int. Longer answers are refused.

    Raises:
        InputError: If the address is invalid.
    """

    def __init__(self, url, timeout=30.0, max_message_bytes=64 << 20):
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
        self._timeout, self._max_message_bytes = timeout, max_message_bytes

    def close(self):
        """Closes the connection; the next request opens another."""
        self._connection.close()

    def request(self, method, path, body=None, headers=None, timeout=None):
        """Sends one HTTP request, without retries.

        Args:
            method: str. "GET" or "POST".
            path: str. Starts with `/v1`.
            body: bytes or None.
            headers: dict or None.
            timeout: float or None. Seconds; None is the time-out of the connection.

        Returns:
            Answer, whatever its status.

        Raises:
            ServingError: If there is no answer, or it is too long.
        """
        timeout = timeout or self._timeout
        try:
            return self._exchange(method, path, body, headers or {}, timeout)
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

    def _exchange(self, method, path, body, headers, timeout):
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
