"""The local server answers as the model server does, and has a page."""

import json
import shutil
import socket

import pytest

from albert_keras.serving.local.local_server import MAX_BODY_BYTES, LocalServer, find_exports
from data_pipeline.errors import InputError
from tests.albert_keras.serving.local.running import PREDICT, ask, predict, running

STATUS = "/v1/models/books"


def test_metadata_has_the_signatures(server):
    metadata = json.loads(ask(server, "GET", f"{STATUS}/metadata").body)["metadata"]
    pair = metadata["signature_def"]["signature_def"]["pair"]
    assert pair["method_name"] == "tensorflow/serving/predict"
    assert pair["inputs"]["first"]["dtype"] == "DT_STRING"
    assert pair["inputs"]["first"]["tensor_shape"] == {"dim": [{"size": "-1"}]}


def test_numbers_and_bytes_are_written_as_by_the_model_server(server):
    body = {"signature_name": "not_finite", "inputs": ["a"]}
    assert b"NaN" in predict(server, body).body and b"Infinity" in predict(server, body).body
    pair = {"first": ["\xe9"], "second": [{"b64": "YQ=="}]}
    answer = predict(server, {"signature_name": "pair", "inputs": pair})
    assert json.loads(answer.body)["outputs"]["joined"] == ["\xe9a"]


def test_what_happens_to_the_folder_of_a_loaded_model_changes_no_answer(contract_export, tmp_path):
    folder = shutil.copytree(contract_export, tmp_path / "books")
    with running([folder]) as server:
        before = predict(server, {"instances": ["a"]}).body
        shutil.copytree(folder / "3", folder / "4")
        (status,) = json.loads(ask(server, "GET", STATUS).body)["model_version_status"]
        assert status["version"] == "3"
        shutil.rmtree(folder)
        assert predict(server, {"instances": ["a"]}).body == before


@pytest.mark.parametrize("path, content", [("/", "html"), ("/page/page.js", "javascript")])
def test_the_page_may_load_from_the_server_alone(server, path, content):
    answer = ask(server, "GET", path)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == f"text/{content}; charset=utf-8"
    policy = answer.headers["Content-Security-Policy"].split("; ")
    assert policy[:2] == ["default-src 'none'", "script-src 'self'"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Access-Control-Allow-Origin"] is None


def test_requests_that_the_server_does_not_take_are_refused(server):
    assert ask(server, "PUT", PREDICT).status == 405
    answer = predict(server, {"instances": ["a" * MAX_BODY_BYTES]})
    assert answer.status == 413 and "at most 1048576 bytes" in answer.error
    answer = predict(server, {"instances": ["a"] * 65})
    assert answer.error == "The input `text` must have at most 64 texts. Received: 65."
    answer = predict(server, {"signature_name": "\ud800", "instances": ["a"]})
    assert answer.status == 400 and "\\ud800" in answer.error
    for wrong in (99_999_999_999, True):
        given = {"signature_name": "predict_tokens", "inputs": [[wrong]]}
        assert "must be int32" in predict(server, given).error
    assert "nested" in predict(server, b"[" * 10_000).error
    answer = predict(server, {"instances": ["fail"]})  # an error of the model
    assert answer.status == 400 and "no fail" in answer.error
    assert ask(server, "GET", STATUS).status == 200


def _nested(value, depth):
    return value if not depth else [_nested(value, depth - 1)]


@pytest.mark.parametrize("depth", [2, 9, 33, 255, 400, 900])
def test_lists_that_are_nested_deeply_are_refused(server, depth):
    """TensorFlow ends the process for more than 254 dimensions."""
    for value in ("a", 1, [], None):
        wrong = _nested(value, depth)
        assert "must be string of the shape" in predict(server, {"instances": wrong}).error
        wrong = {"signature_name": "predict_tokens", "inputs": _nested(wrong, 1)}
        assert "must be int32 of the shape" in predict(server, wrong).error
    assert predict(server, {"instances": ["a"]}).status == 200


def test_the_page_of_another_site_cannot_ask(server):
    body = b'{"instances": ["a"]}'
    kinds = ["text/plain", "application/x-www-form-urlencoded", "", "application/json-seq"]
    for kind in kinds:
        answer = ask(server, "POST", PREDICT, body, {"Content-Type": kind})
        assert answer.status == 415 and "must be `application/json`" in answer.error
    own, json_type = server.url.rstrip("/"), {"Content-Type": "application/json; charset=utf-8"}
    others = ["http://evil.example", "null", "http://[::1", ""]
    for origin, status in [(own, 200), *((other, 403) for other in others)]:
        headers = json_type | {"Origin": origin}
        assert ask(server, "POST", PREDICT, body, headers).status == status
        assert ask(server, "GET", STATUS, headers=headers).status == status


def test_a_taken_port_is_reported_before_models_are_loaded(contract_export):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=f"`port` a free port.*{port}"):
            LocalServer([contract_export], port=port)


@pytest.mark.parametrize(
    "host, allowed, names, page",
    [
        ("127.0.0.1", [], ["127.0.0.1", "localhost", "LOCALHOST"], "127.0.0.1"),
        ("127.0.0.2", [], ["127.0.0.2"], "127.0.0.2"),
        ("::1", [], ["[::1]"], "[::1]"),
        ("127.0.0.1", ["box"], ["127.0.0.1", "localhost", "box"], "127.0.0.1"),
        ("0.0.0.0", ["Box.example", "[fd00::5]"], ["box.example", "[fd00::5]"], "box.example"),
    ],
)
def test_only_requests_for_its_names_are_answered(
    contract_export, caplog, host, allowed, names, page
):
    others = {"evil.example", "127.0.0.1", "127.0.0.2", "localhost", "[::1]", "::1", "[::1", ""}
    with running([contract_export], host, allow_host=allowed) as server:
        port = server.url.rpartition(":")[2].strip("/")
        assert server.url == f"http://{page}:{port}/"
        assert ("Other computers can reach" in caplog.text) == (host == "0.0.0.0")
        address = host.replace("0.0.0.0", "127.0.0.1")
        for path in ("/", "/models.json", STATUS):
            for name in names:
                for given in (name, f"{name}:{port}", f"{name}:80"):
                    answer = ask(server, "GET", path, headers={"Host": given}, address=address)
                    assert answer.status == 200, given
            for name in others - set(names):
                given = {"Host": name, "Origin": f"http://{name}"}
                answer = ask(server, "GET", path, headers=given, address=address)
                assert answer.status == 400 and f"is addressed by {page}" in answer.error


@pytest.mark.parametrize(
    "host, allowed, message",
    [
        ("localhost", [], "`host` must be an IP address, such as 127.0.0.1"),
        ("0.0.0.0", [], "A server at 0.0.0.0 answers requests for the names in `allow_host` alone"),
        ("::", [], "A server at :: answers requests"),
        ("::", ["*"], "must be names or addresses without a port"),
        ("::", ["box:80"], "must be names or addresses without a port"),
        ("192.0.2.1", [], "`host` must be an address of this computer"),
    ],
)
def test_addresses_that_cannot_be_are_refused(contract_export, host, allowed, message):
    with pytest.raises(InputError, match=message):
        LocalServer([contract_export], host, 0, allow_host=allowed)


def test_models_are_found_by_folder_version_and_name(contract_export, tmp_path):
    assert find_exports([contract_export / "3"]) == {"books": contract_export / "3"}
    assert find_exports([contract_export.parent])["books"] == contract_export / "3"
    with pytest.raises(InputError, match="Models must have different names"):
        find_exports([contract_export, contract_export])
    with pytest.raises(InputError, match="must be an exported model"):
        find_exports([tmp_path])
    (tmp_path / "Books" / "1").mkdir(parents=True)
    with pytest.raises(InputError, match="The name of a model"):
        find_exports([tmp_path / "Books"])
