"""`albert-keras serve-check` as a user gives it."""

import json
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from albert_keras.cli import main

TEXT = {"dtype": "DT_STRING", "tensor_shape": {"dim": [{"size": "-1"}]}}
OPTIONS = {"dtype": "DT_STRING", "tensor_shape": {"dim": [{"size": "-1"}, {"size": "-1"}]}}
STATUS = {"model_version_status": [{"version": "7", "state": "AVAILABLE"}]}
SIGNATURES = {
    "choose": {
        "inputs": {"options": OPTIONS, "text": TEXT},
        "outputs": {"choice": {}, "share": {}},
    },
    "rate": {"inputs": {"text": TEXT}, "outputs": {"score": {}}},
    "__saved_model_init_op": {},
}


@pytest.fixture
def scripted():
    """Yields a server that gives `answers`, by the end of the path, and keeps `asked`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self._send()

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.asked.append(body)
            self._send(body["signature_name"])

        def _send(self, name=""):
            status, answer = server.answers.get(name or self.path.rpartition("/")[2], (404, {}))
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    metadata = {"metadata": {"signature_def": {"signature_def": SIGNATURES}}}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.asked = []
    server.answers = {
        "books": (200, STATUS),
        "metadata": (200, metadata),
        "choose": (200, {"outputs": {"choice": [0, 1], "share": [0.5, 0.5]}}),
        "rate": (200, {"outputs": [1.0, 0.5]}),
    }
    server.words = ["serve-check", "--model", "books"]
    server.words += ["--rest", f"http://127.0.0.1:{server.server_port}/"]
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_each_signature_is_asked_for_two_rows(scripted, capsys):
    assert main([*scripted.words, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["version"], result["answered"]) == (7, ["choose", "rate"])
    assert result["faults"] == {} and not result["url"].endswith("/")
    chosen, rated, refused = scripted.asked
    texts = ["a\tb"] * 2
    assert chosen["inputs"] == {"options": [texts] * 2, "text": texts}
    assert rated["inputs"] == {"text": texts}
    assert refused["signature_name"] == "an unknown signature"


@pytest.mark.parametrize(
    "name, answer, fault",
    [
        ("choose", (200, {"outputs": {"choice": [0, 1]}}), "expected the outputs choice, share"),
        ("choose", (200, {"outputs": [0, 1]}), "expected the outputs choice, share"),
        ("choose", (200, {"outputs": {"choice": 0, "share": [1, 1]}}), "expected 2 rows of choice"),
        ("choose", (500, {"error": "lost"}), 'answered HTTP 500: {"error": "lost"}'),
        ("rate", (200, {"outputs": [1]}), "expected 2 rows of score"),
        ("an unknown signature", (200, {}), "expected a status from 400 to 499, received 200"),
    ],
)
def test_a_wrong_answer_has_an_exit_code_and_is_reported(scripted, capsys, name, answer, fault):
    scripted.answers[name] = answer
    assert main(scripted.words) == 4
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith(f"failed: {name}: ") and fault in last


@pytest.mark.parametrize(
    "status, message",
    [
        ((404, {"error": "no books"}), 'answered HTTP 404: {"error": "no books"}'),
        ((200, {"other": 1}), "answered HTTP 200"),
        (
            (200, {"model_version_status": [{"version": "7", "state": "END"}]}),
            "has no version that answers",
        ),
    ],
)
def test_a_server_without_the_model_is_wrong_input(scripted, capsys, status, message):
    scripted.answers["books"] = status
    assert main(scripted.words) == 2
    assert message in capsys.readouterr().err


def test_all_signatures_of_the_local_server_are_answered_without_tensorflow(server):
    program = (
        "import sys; from albert_keras.cli import main; words = ['--rest', sys.argv[1]]; "
        "assert main(['serve-check', '--model', 'books', *words]) == 0; "
        "assert 'tensorflow' not in sys.modules"
    )
    run = [sys.executable, "-c", program, server.url]
    lines = subprocess.run(run, check=True, capture_output=True, text=True).stdout.splitlines()
    assert lines == [
        f"{server.url[:-1]}, books version 3",
        "answered: not_finite, pair, predict_tokens, serving_default, single",
    ]
