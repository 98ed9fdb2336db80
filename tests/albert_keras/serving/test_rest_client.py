"""The REST client: what it sends, and what its errors say."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from albert_keras.serving.rest_client import RestClient, ServingError, VersionState, to_json_value
from data_pipeline.errors import InputError


@pytest.fixture
def scripted():
    """Yields a server with `answers`, (status, bytes or JSON), and the `bodies` that came."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self._send(*server.answers.pop())

        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.bodies.append((self.path, json.loads(body)))
            self._send(*server.answers.pop())

        def _send(self, status, answer):
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.answers, server.bodies = [], []
    server.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_request_contains_signature_and_values(scripted):
    scripted.answers = [(200, {"outputs": {"a": [1], "b": [2]}})]
    client = RestClient(scripted.url + "/behind/", "books", version=3)
    assert client.predict("pair", first=[b"\xff"], second=np.array(["y"])) == {"a": [1], "b": [2]}
    body = {"signature_name": "pair", "inputs": {"first": [{"b64": "/w=="}], "second": ["y"]}}
    assert scripted.bodies == [("/behind/v1/models/books/versions/3:predict", body)]


def test_status_lists_versions_with_their_errors(scripted):
    entry = {"version": "7", "state": "END", "status": {"error_message": "broken"}}
    scripted.answers = [(200, {"model_version_status": [entry]})]
    assert RestClient(scripted.url, "books").status() == [VersionState(7, "END", "broken")]


@pytest.mark.parametrize(
    "status, answer, message",
    [
        (503, {"error": "queue full."}, "answered HTTP 503: queue full"),
        (200, b'{"other": 1}', "answered HTTP 200"),
    ],
)
def test_an_error_has_status_and_message_of_the_server(scripted, status, answer, message):
    scripted.answers = [(status, answer)]
    with pytest.raises(ServingError) as caught:
        RestClient(scripted.url, "books").predict(text=["a"])
    assert caught.value.http_status == status and message in str(caught.value)


def test_a_server_that_does_not_answer_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        client = RestClient(f"http://127.0.0.1:{port}", "books", timeout=0.1)
        with pytest.raises(ServingError, match="gave no answer: timed out") as caught:
            client.predict(text=["a"])
    assert caught.value.http_status is None
    with pytest.raises(ServingError, match="gave no answer: Connection refused"):
        client.status()
    with pytest.raises(InputError, match="`timeout` must be a positive number of seconds"):
        RestClient("http://127.0.0.1:1", "books", timeout=0)


@pytest.mark.parametrize("url", ["127.0.0.1:8501", "grpc://a:1", "http://a:x", "http://a?b=c"])
def test_a_wrong_address_is_refused(url):
    with pytest.raises(InputError, match="must be like `http://127.0.0.1:8501`"):
        RestClient(url, "books")


def test_values_become_json():
    for value, sent in (
        (("a", ["b"]), ["a", ["b"]]),
        ("café \U0001f600", "café \U0001f600"),
        ("caf\udce9", {"b64": "Y2Fm6Q=="}),
        (np.float32(0.5), 0.5),
        (np.array([[True]]), [[True]]),
    ):
        assert to_json_value(value) == sent
