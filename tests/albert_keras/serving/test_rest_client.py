"""The REST client: what it sends, when it repeats, what its errors say."""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from albert_keras.serving.client.client_errors import Retries, ServingError, advice
from albert_keras.serving.client.rest_client import RestClient, VersionState, to_json_value
from data_pipeline.errors import InputError

PREDICTIONS = {"predictions": ["yes"]}
TEXT = {"dtype": "DT_STRING", "tensor_shape": {"dim": [{"size": "-1"}], "unknown_rank": False}}
METADATA = {
    "metadata": {
        "signature_def": {
            "signature_def": {
                "serving_default": {
                    "method_name": "tensorflow/serving/predict",
                    "inputs": {"text": TEXT},
                    "outputs": {"label": TEXT},
                },
                "__saved_model_init_op": {"method_name": "", "inputs": {}, "outputs": {}},
            }
        }
    }
}


@pytest.fixture
def scripted():
    """Returns a function that starts a server of given (status, answer) pairs, one per POST.

    A GET of the metadata gets METADATA. The function returns (url, list of bodies to come); the
    answer None cuts the connection.
    """
    servers = []

    def start(*answers):
        bodies, left = [], list(answers)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                self._send(200, METADATA if self.path.endswith("/metadata") else left.pop(0)[1])

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                bodies.append((self.path, json.loads(body)))
                status, answer = left.pop(0)
                if answer is None:
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                else:
                    self._send(status, answer)

            def _send(self, status, answer):
                content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_):
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}", bodies

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_request_holds_signature_and_values(connect, scripted):
    url, bodies = scripted((200, {"outputs": {"a": [1], "b": [2]}}), (200, PREDICTIONS))
    client = connect(url + "/behind/", "books", label="stable")
    assert client.predict("pair", first=["x"], second=np.array(["y"])) == {"a": [1], "b": [2]}
    assert client.predict_rows([{"text": b"\xff"}]) == ["yes"]
    path = "/behind/v1/models/books/labels/stable:predict"
    assert bodies == [
        (path, {"signature_name": "pair", "inputs": {"first": ["x"], "second": ["y"]}}),
        (path, {"signature_name": "serving_default", "instances": [{"text": {"b64": "/w=="}}]}),
    ]


def test_a_single_output_gets_its_name_back(connect, scripted):
    url, _ = scripted((200, {"outputs": ["yes"]}))
    assert connect(url, "books").predict(text=["a"]) == {"label": ["yes"]}


def test_metadata_lists_signatures(connect, scripted):
    url, _ = scripted()
    signatures = connect(url, "books").metadata()
    assert list(signatures) == ["serving_default"]
    assert signatures["serving_default"].method == "predict"
    assert signatures["serving_default"].inputs == {"text": ("DT_STRING", (-1,))}


def test_status_lists_versions_with_their_errors(connect, scripted):
    entry = {"version": "7", "state": "END", "status": {"error_message": "broken"}}
    url, _ = scripted((200, {"model_version_status": [entry]}))
    assert connect(url, "books").status() == [VersionState(7, "END", "broken")]


@pytest.mark.parametrize(
    "first", [(503, {"error": "busy"}), (429, {"error": "slow down"}), (200, None)]
)
def test_what_passes_is_repeated(connect, scripted, first):
    url, bodies = scripted(first, first, (200, PREDICTIONS))
    assert connect(url, "books").predict_rows(["a"]) == ["yes"]
    assert len(bodies) == 3 and bodies[0] == bodies[2]


def test_what_stays_is_told_after_the_last_repetition(connect, scripted):
    url, bodies = scripted(*[(503, {"error": "queue full"})] * 3)
    with pytest.raises(ServingError, match=r"answered UNAVAILABLE \(HTTP 503\): queue full\."):
        connect(url, "books", retries=2).predict_rows(["a"])
    assert len(bodies) == 3


@pytest.mark.parametrize("status", [400, 404, 500, 501, 504])
def test_what_would_not_pass_is_not_repeated(connect, scripted, status):
    url, bodies = scripted((status, {"error": "no"}))
    with pytest.raises(ServingError) as caught:
        connect(url, "books").predict_rows(["a"])
    assert caught.value.http_status == status and len(bodies) == 1


def test_repetitions_wait_longer_each_time_and_end_at_the_time_limit():
    now, waits = [0.0], []

    def sleep(seconds):
        waits.append(seconds)
        now[0] += seconds

    def call(seconds):
        left.append(seconds)
        raise ServingError("here", "UNAVAILABLE", "busy")

    left = []
    with pytest.raises(ServingError):
        Retries(10, 1.0, sleep, lambda: now[0]).run(call)
    assert all(0.05 * 2**n <= wait <= 0.1 * 2**n for n, wait in enumerate(waits))
    assert 3 <= len(waits) <= 4 and sum(waits) < 1
    assert left[0] == 1.0 and left[-1] == pytest.approx(max(1.0 - sum(waits), 0.001))


def test_no_answer_in_time_is_told_and_not_repeated(connect):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = connect(f"http://127.0.0.1:{silent.getsockname()[1]}", "books", timeout=0.1)
        with pytest.raises(ServingError, match="no answer.*Raise `timeout`") as caught:
            client.predict_rows(["a"])
    assert caught.value.code == "DEADLINE_EXCEEDED" and caught.value.http_status is None


def test_a_server_that_is_not_there_is_told(connect):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ServingError, match="UNAVAILABLE.*Connection refused.*check the address"):
        connect(f"http://127.0.0.1:{port}", "books", retries=0).status()


def test_too_long_an_answer_is_refused_once(connect, scripted):
    url, bodies = scripted((200, {"predictions": ["a" * 1000]}))
    with pytest.raises(ServingError, match="Raise `max_message_bytes`"):
        connect(url, "books", max_message_bytes=500).predict_rows(["a"])
    assert len(bodies) == 1


@pytest.mark.parametrize(
    "answer", [b"<html>hello</html>", b"", b"[1]", b'{"other": 1}', b"[" * 9999]
)
def test_something_else_than_the_server_is_told(connect, scripted, answer):
    url, _ = scripted((200, answer))
    with pytest.raises(ServingError, match="not a model server") as caught:
        connect(url, "books").predict_rows(["a"])
    assert caught.value.code == "UNREADABLE"


def test_a_body_too_large_for_the_proxy_is_told(connect, scripted):
    url, _ = scripted((413, b"<html>413 Request Entity Too Large</html>"))
    with pytest.raises(ServingError, match="Send fewer rows.*proxy") as caught:
        connect(url, "books").predict_rows(["a"])
    assert caught.value.code == "TOO_LARGE"


def test_a_wrong_signature_gets_those_there_are(connect, scripted):
    url, _ = scripted((400, {"error": 'Serving signature name: "x" not found'}))
    with pytest.raises(ServingError, match="The model has: serving_default\\.$"):
        connect(url, "books").predict_rows(["a"], "x")


def test_a_wrong_input_gets_those_there_are(connect, scripted):
    url, _ = scripted((400, {"error": "Missing named input: text in 'inputs' object."}))
    with pytest.raises(ServingError, match=r"`serving_default` takes: text DT_STRING \[B\]\.$"):
        connect(url, "books").predict(words=["a"])


@pytest.mark.parametrize(
    "said, part",
    [
        ("Servable not found for request: Latest(books)", "Compare the name"),
        ("Servable not found for request: Specific(books, 7)", "Choose a version"),
        ("Unrecognized servable version label: x", "Labels are set in"),
        ("Expecting tensor size: 1 but got: 2", "same shape"),
        ("Batching session Run() input tensors must have equal 0th-dimension size.", "same number"),
        ("Task size 9 is larger than maximum input batch size 8", "max_batch_size"),
        ("Op type not registered 'TFText>RoundRobinTrim'", "image of the server kit"),
    ],
)
def test_known_messages_get_advice(said, part):
    assert part in advice("INVALID_ARGUMENT", said)


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8501", "grpc://a:1", "http://", "http://a:x", "http://a:99999", "http://a?b=c"],
)
def test_an_address_that_is_none_is_refused(url):
    with pytest.raises(InputError):
        RestClient(url, "books")


@pytest.mark.parametrize("wrong", [{"retries": -1}, {"timeout": 0}, {"version": 1, "label": "a"}])
def test_settings_that_cannot_be_are_refused(wrong):
    with pytest.raises(InputError):
        RestClient("http://127.0.0.1:8501", "books", **wrong)


def test_a_name_cannot_leave_its_place_in_the_address(connect, scripted):
    url, bodies = scripted((200, PREDICTIONS))
    connect(url, "../a b?c:predict").predict_rows(["a"])
    assert bodies[0][0] == "/v1/models/..%2Fa%20b%3Fc%3Apredict:predict"


@pytest.mark.parametrize(
    "value, sent",
    [
        (("a", ["b"]), ["a", ["b"]]),
        ({"t": np.array([b"\xff"])}, {"t": [{"b64": "/w=="}]}),
        ("café \U0001f600", "café \U0001f600"),
        ("caf\udce9", {"b64": "Y2Fm6Q=="}),
        (np.float32(0.5), 0.5),
        (np.array([[True]]), [[True]]),
    ],
)
def test_values_become_json(value, sent):
    assert to_json_value(value) == sent


@pytest.mark.parametrize("value", [None, {1, 2}, "\ud800"])
def test_values_without_json_are_refused(value):
    with pytest.raises(InputError):
        to_json_value([value])
