"""A local server in a thread, and raw requests to it."""

import contextlib
import http.client
import json
import threading
import time
import urllib.parse
from typing import NamedTuple

from albert_keras.serving.local.local_server import LocalServer

PREDICT = "/v1/models/books:predict"


@contextlib.contextmanager
def running(models, host="127.0.0.1", **options):
    """Yields a LocalServer that answers, on a port that was free."""
    with LocalServer(models, host, 0, **options) as server:
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield server
        finally:
            server.stop()
            thread.join(60)
            assert not thread.is_alive(), "the server does not stop"


class Answer(NamedTuple):
    """An answer: `status` int, `headers` of http.client, `body` bytes."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def error(self):
        return json.loads(self.body)["error"]


def ask(server, method, path, body=None, headers=None, address="127.0.0.1"):
    """Sends one request to a LocalServer by a connection of its own, and returns the Answer."""
    port = urllib.parse.urlsplit(server.url).port
    connection = http.client.HTTPConnection(address, port, timeout=20)
    try:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


def predict(server, body):
    """Sends a predict request; `body` is bytes, or a value to be written as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ask(server, "POST", PREDICT, content, {"Content-Type": "application/json"})
