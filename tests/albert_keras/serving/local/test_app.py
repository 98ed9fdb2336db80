"""A local server answers as the model server does, has a page, and tells what it serves."""

import json
import threading
import time

import pytest

from albert_keras.serving.check.serve_check import serve_check
from albert_keras.serving.client.rest_client import RestClient
from albert_keras.serving.protocol.status import invalid
from tests.albert_keras.serving.local.client import PREDICT, ask, predict, send_raw
from tests.albert_keras.serving.local.conftest import running

STATUS = "/v1/models/books"


def test_all_golden_cases_are_answered_as_by_the_model_server(server):
    result = serve_check(server.url, "books", clients=2, requests=10)
    assert result.faults == () and result.ok and result.version == 3
    missing = {case.needs for case in result.cases if case.needs}
    assert missing <= {"bytes", "label", "lists"}
    assert sum(not case.needs for case in result.cases) > 70


def test_a_client_reads_status_signatures_and_answers(server):
    with RestClient(server.url, "books") as client:
        assert [(one.version, one.state) for one in client.status()] == [(3, "AVAILABLE")]
        assert client.metadata()["pair"].inputs["first"] == ("DT_STRING", (-1,))
        assert client.predict("single", text=["a", "bcd"]) == {"length": [1, 3]}


@pytest.mark.parametrize("inputs", [["a"], {}])
def test_what_only_the_loader_runs_is_not_asked(server, inputs):
    answer = predict(server, {"signature_name": "__saved_model_init_op", "inputs": inputs})
    assert (answer.status, "not found" in answer.error) == (400, True)


def test_a_label_is_none_that_is_known(server):
    answer = ask(server, "GET", f"{STATUS}/labels/stable")
    assert answer.status == 400
    assert answer.error == "The model `books` has no loaded version with the label `stable`."


def test_the_models_are_listed_with_their_signatures(server):
    (model,) = json.loads(ask(server, "GET", "/models.json").body)
    assert (model["name"], model["version"], model["task"]) == ("books", 3, None)
    assert model["signatures"]["predict_tokens"]["inputs"] == {"input_ids": ["DT_INT32", [-1, -1]]}
    assert model["signatures"]["regress"] == {
        "method": "regress",
        "inputs": {"inputs": ["DT_STRING", [-1]]},
        "outputs": {"outputs": ["DT_FLOAT", [-1]]},
    }


@pytest.mark.parametrize(
    "path, content",
    [
        ("/", "text/html; charset=utf-8"),
        ("/page/index.html", "text/html; charset=utf-8"),
        ("/page/page.js", "text/javascript; charset=utf-8"),
        ("/page/page.css", "text/css; charset=utf-8"),
    ],
)
def test_the_page_may_load_from_the_server_alone(server, path, content):
    answer = ask(server, "GET", path)
    assert (answer.status, answer.headers["Content-Type"]) == (200, content)
    policy = answer.headers["Content-Security-Policy"].split("; ")
    assert policy[:2] == ["default-src 'none'", "script-src 'self'"]
    assert {"form-action 'none'", "frame-ancestors 'none'", "base-uri 'none'"} <= set(policy)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Access-Control-Allow-Origin"] is None


@pytest.mark.parametrize(
    "path",
    [
        "/page/../app.py",
        "/page/%2e%2e/app.py",
        "/page/..%2fapp.py",
        "/page/%2e%2e%2fapp.py",
        "/page/%00",
        "/page/index.html%00.js",
        "/page/not-there.js",
        "/page/",
        "/models.json/",
        "/favicon.ico",
        "//etc/passwd",
        "http://127.0.0.1/v1/models/books",
        "/v1%2fmodels/books",
        "/v1/models/%00",
        "/v1/models/..%2f..%2fetc",
    ],
)
def test_other_paths_are_not_there(server, path):
    answer = ask(server, "GET", path)
    assert answer.status == 404 and answer.error


@pytest.mark.parametrize("method, path", [("PUT", PREDICT), ("OPTIONS", PREDICT), ("POST", "/")])
def test_other_methods_are_not_taken(server, method, path):
    answer = ask(server, method, path)
    assert answer.status == 405 and answer.error
    assert "GET" in answer.headers["Allow"]


def test_a_connection_is_kept_for_more_requests(server):
    one = b"GET /v1/models/books HTTP/1.1\r\nHost: localhost\r\n"
    received = send_raw(server, one + b"\r\n" + one + b"Connection: close\r\n\r\n")
    assert received.count(b"HTTP/1.1 200 OK") == received.count(b"AVAILABLE") == 2


def test_too_many_texts_and_too_large_answers_are_refused(server):
    answer = predict(server, {"instances": ["a"] * 65})
    assert (answer.status, answer.error) == (
        400,
        "The input `text` must have at most 64 texts. Received: 65.",
    )
    ids = {"signature_name": "predict_tokens", "inputs": [[1] * 999]}
    assert predict(server, ids).status == 200
    ids["inputs"] = [[1] * 1000]
    assert "at most 1000 values. It has 1001" in predict(server, ids).error


@pytest.fixture
def blocked(monkeypatch):
    """Returns a function that makes predictions of a server wait, and an Event that ends that."""
    event = threading.Event()

    def block(server):
        begun = threading.Semaphore(0)

        def wait(*_, **__):
            begun.release()
            event.wait(20)
            raise invalid("it took long")

        monkeypatch.setattr(server.models["books"].servable()[1], "predict", wait)
        return begun

    yield block, event
    event.set()


def in_threads(number, function):
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(function())) for _ in range(number)]
    for thread in threads:
        thread.start()
    return threads, answers


def test_a_status_is_told_while_predictions_are_made(server, blocked):
    block, event = blocked
    begun = block(server)
    threads, answers = in_threads(3, lambda: predict(server, {"instances": ["a"]}))
    assert begun.acquire(timeout=20) and begun.acquire(timeout=20)
    assert not begun.acquire(timeout=0.1)  # two at once
    assert ask(server, "GET", STATUS).status == 200 and not answers
    event.set()
    for thread in threads:
        thread.join(60)
    assert [answer.error for answer in answers] == ["it took long"] * 3


def test_requests_that_wait_too_long_are_told_that_the_server_is_busy(books, blocked):
    block, event = blocked
    with running([books], computed_at_once=1, waiting_seconds=0.1) as server:
        begun = block(server)
        threads, _ = in_threads(1, lambda: predict(server, {"instances": ["a"]}))
        assert begun.acquire(timeout=20)
        start = time.monotonic()
        answer = predict(server, {"instances": ["a"]})
        assert answer.status == 503 and 0.1 <= time.monotonic() - start < 10
        assert "busy" in answer.error and answer.headers["Retry-After"] == "1"
        event.set()
        threads[0].join(60)
        assert ask(server, "GET", STATUS).status == 200
