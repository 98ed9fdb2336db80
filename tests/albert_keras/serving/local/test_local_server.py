"""The local server answers as the model server does, and has a page."""

import json
import logging
import shutil
import socket

import pytest

from albert_keras.serving.local.local_server import MAX_BODY_BYTES, LocalServer, find_exports
from albert_keras.serving.rest_client import RestClient
from albert_keras.serving.serve_check import serve_check
from data_pipeline.errors import InputError
from tests.albert_keras.serving.local.running import PREDICT, ask, predict, running

STATUS = "/v1/models/books"


def test_a_client_reads_status_signatures_and_answers(server):
    client = RestClient(server.url, "books", version=3)
    assert [(one.version, one.state) for one in client.status()] == [(3, "AVAILABLE")]
    assert client.metadata()["pair"].inputs["first"] == ("DT_STRING", (-1,))
    assert client.predict("single", text=["a", "bcd"]) == {"length": [1, 3]}


def test_numbers_and_bytes_are_written_as_by_the_model_server(server):
    body = {"signature_name": "not_finite", "inputs": ["a"]}
    assert b"NaN" in predict(server, body).body and b"Infinity" in predict(server, body).body
    body = b'{"signature_name": "pair", "inputs": {"first": ["\xff"], "second": [{"b64": "YQ=="}]}}'
    assert b"\xffa" in predict(server, body).body
    body = {"signature_name": "uneven", "instances": ["a", "b"]}
    assert "not all have one value per row" in predict(server, body).error


def test_the_models_are_listed_with_their_signatures(server):
    (model,) = json.loads(ask(server, "GET", "/models.json").body)
    assert (model["name"], model["version"], model["task"]) == ("books", 3, None)
    assert model["signatures"]["predict_tokens"]["inputs"] == {"input_ids": ["DT_INT32", [-1, -1]]}


@pytest.mark.parametrize("path, content", [("/", "html"), ("/page/page.js", "javascript")])
def test_the_page_may_load_from_the_server_alone(server, path, content):
    answer = ask(server, "GET", path)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == f"text/{content}; charset=utf-8"
    policy = answer.headers["Content-Security-Policy"].split("; ")
    assert policy[:2] == ["default-src 'none'", "script-src 'self'"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Access-Control-Allow-Origin"] is None


@pytest.mark.parametrize(
    "path", ["/page/../local_server.py", "/page/%2e%2e%2flocal_server.py", "/page/", "//etc/passwd"]
)
def test_other_paths_do_not_exist(server, path):
    answer = ask(server, "GET", path)
    assert answer.status == 404 and answer.error


def test_requests_that_the_server_does_not_take_are_refused(server):
    assert ask(server, "PUT", PREDICT).status == 405
    assert ask(server, "GET", STATUS, headers={"Host": "evil.example"}).status == 400
    answer = predict(server, {"instances": ["a" * MAX_BODY_BYTES]})
    assert answer.status == 413 and "at most 1048576 bytes" in answer.error
    answer = predict(server, {"instances": ["a"] * 65})
    assert answer.error == "The input `text` must have at most 64 texts. Received: 65."
    answer = predict(server, {"signature_name": "\ud800", "instances": ["a"]})
    assert answer.status == 400 and "\\ud800" in answer.error
    for wrong in (99_999_999_999, True):
        given = {"signature_name": "predict_tokens", "inputs": [[wrong]]}
        assert "must be int32" in predict(server, given).error
    assert "nested" in predict(server, b"[" * 100_000).error
    answer = predict(server, {"instances": ["fail"]})  # an error of the model
    assert answer.status == 400 and "no fail" in answer.error
    assert ask(server, "GET", STATUS).status == 200


def test_a_text_that_the_command_line_refuses_is_refused(contract_export, tmp_path):
    folder = shutil.copytree(contract_export / "3", tmp_path / "books" / "3")
    config = {"name": "pair", "text": "a", "pair": "b", "labels": ["no", "yes"]}
    (folder / "export.json").write_text(json.dumps({"task": {"config": config}}))
    with running([folder]) as server:
        assert predict(server, {"instances": ["a\tb"]}).status == 200
        assert "two texts separated by a tab" in predict(server, {"instances": ["a"]}).error
        assert "It is blank" in predict(server, {"instances": [" \t"]}).error
        assert serve_check(server.url, "books").ok


def test_a_taken_port_is_reported_before_models_are_loaded(contract_export):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=f"`port` a free port.*{port}"):
            LocalServer([contract_export], port=port)
    with pytest.raises(InputError, match="`host` must be an address of this computer"):
        LocalServer([contract_export], host="192.0.2.1", port=0)


def test_an_address_for_others_causes_a_warning(contract_export, caplog):
    with caplog.at_level(logging.WARNING), LocalServer([contract_export], "0.0.0.0", 0):
        pass
    assert "Other computers can reach 0.0.0.0" in caplog.text


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
