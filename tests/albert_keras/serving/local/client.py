"""Raw requests, including requests that no ordinary client would send."""

import http.client
import json
import socket
import urllib.parse
from typing import NamedTuple

JSON = {"Content-Type": "application/json"}
PREDICT = "/v1/models/books:predict"


class Answer(NamedTuple):
    """What came back: `status` int, `headers` of http.client, `body` bytes."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def error(self):
        return json.loads(self.body)["error"]


def ask(server, method, path, body=None, headers=None, **options):
    """Sends one request to a LocalServer by a connection of its own, and returns the Answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port_of(server), timeout=20)
    try:
        connection.request(method, path, body, headers or {}, **options)
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()


def predict(server, body, **headers):
    """Asks for a prediction; `body` bytes, or what is to be JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return ask(server, "POST", PREDICT, content, {**JSON, **named})


def send_raw(server, data, seconds=20):
    """Sends bytes, and returns all that comes back until the server closes."""
    with socket.create_connection(("127.0.0.1", port_of(server)), timeout=seconds) as connection:
        connection.sendall(data)
        received = b""
        while part := connection.recv(1 << 16):
            received += part
        return received


def port_of(server):
    return urllib.parse.urlsplit(server.url).port
