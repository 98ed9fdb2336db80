"""Tests ask the real server where it is installed; else the contract server, also by itself."""

import json
import os
import sys

import pytest
from google.protobuf import text_format

from albert_keras.serving.client.client_errors import ServingError
from albert_keras.serving.client.grpc_client import GrpcClient
from tests.albert_keras.serving.contract.batching import BatchingParameters
from tests.albert_keras.serving.contract.process import contract_process
from tests.albert_keras.serving.contract.protos import MESSAGES
from tests.albert_keras.serving.contract.versions import VersionPolicy
from tests.albert_keras.serving.contract_server import ContractServer
from tests.albert_keras.serving.real_server import model_server

#: Writes down what it was started with, then says that each model is loaded, or ends.
FAKE = """#!{python}
import http.server, json, os, pathlib, sys
flags = dict(word[2:].split("=", 1) for word in sys.argv[1:])
texts = [pathlib.Path(flags[key]).read_text() for key in flags if key.endswith("_file")]
pathlib.Path({record!r}).write_text(json.dumps([os.getpid(), flags, texts]))
if {fails}:
    sys.exit("no such model")

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        state = {{"version": "1", "state": "AVAILABLE", "status": {{}}}}
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({{"model_version_status": [state]}}).encode())

http.server.HTTPServer(("127.0.0.1", int(flags["rest_api_port"])), Handler).serve_forever()
"""


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Returns a function that puts a fake server on the PATH and returns what it will write."""

    def install(fails=False):
        executable, record = tmp_path / "tensorflow_model_server", tmp_path / "record"
        text = FAKE.format(python=sys.executable, record=str(record), fails=fails)
        executable.write_text(text)
        executable.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
        return record

    return install


def test_the_real_server_is_started_with_settings_and_ended(install, tmp_path):
    record = install()
    models = {
        "books": {"base_path": tmp_path / "books", "labels": {"stable": 4}},
        "shelf": {"base_path": tmp_path / "shelf", "policy": VersionPolicy(specific=(4, 2))},
    }
    batching = BatchingParameters(4, 1000, 10, (1, 2, 4))
    with model_server(models, batching=batching, check_methods=True, timeout=2.5) as server:
        pid, flags, texts = json.loads(record.read_text())
        assert server.url == f"http://127.0.0.1:{flags.pop('rest_api_port')}"
        assert server.grpc_target == f"127.0.0.1:{flags.pop('port')}"
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    files = [flags.pop(key) for key in ("model_config_file", "batching_parameters_file")]
    assert not any(map(os.path.exists, files))
    assert flags == {
        "rest_api_timeout_in_ms": "2500",
        "file_system_poll_wait_seconds": "1",
        "max_num_load_retries": "0",
        "load_retry_interval_micros": "0",
        "allow_version_labels_for_unavailable_models": "true",
        "enable_signature_method_name_check": "true",
        "enable_batching": "true",
    }
    config = text_format.Parse(texts[0], MESSAGES["ModelServerConfig"]()).model_config_list.config
    assert [one.name for one in config] == ["books", "shelf"]
    assert config[0].base_path == str(tmp_path / "books")
    assert config[0].model_version_policy.latest.num_versions == 1
    assert dict(config[0].version_labels) == {"stable": 4}
    assert list(config[1].model_version_policy.specific.versions) == [4, 2]
    parameters = text_format.Parse(texts[1], MESSAGES["BatchingParameters"]())
    assert parameters.max_batch_size.value == 4 and list(parameters.allowed_batch_sizes) == [
        1,
        2,
        4,
    ]


def test_a_server_that_ends_at_once_is_told_with_its_words(install, tmp_path):
    install(fails=True)
    with pytest.raises(RuntimeError, match="did not start: no such model"):
        with model_server({"books": tmp_path}):
            pass


def test_without_the_real_server_the_contract_server_answers(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with model_server({"books": tmp_path}) as server:
        assert isinstance(server, ContractServer) and server.grpc_target


@pytest.mark.slow
def test_an_export_answers_in_a_process_with_the_operations_of_servers(connect, tiny_export):
    with contract_process(tiny_export) as server:
        with GrpcClient(server.grpc_target, tiny_export.name) as client:
            answer = client.predict(text=["The [MASK] left.", "none"])
        rest = connect(server.url, tiny_export.name).predict(text=["The [MASK] left.", "none"])
    assert answer["pieces"].shape == (2, 1, 10)
    assert [one.decode() for one in answer["filled_text"]] == rest["filled_text"]
    assert rest["filled_text"][1] == "none"
    with pytest.raises(ServingError, match="Connection refused"):  # it ends with its stdin
        connect(server.url, tiny_export.name, retries=0).status()
