"""The client of the kit, which asks over REST with nothing installed."""

import importlib.util
import socket
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from albert_keras.serving.kit.server_kit import write_kit
from albert_keras.serving.protocol.servable import Servable
from tests.albert_keras.serving.contract.model import save_contract_model
from tests.albert_keras.serving.real_server import free_ports, model_server


@pytest.fixture(scope="module")
def export_folder(tmp_path_factory):
    """Returns a folder with version 5."""
    base = tmp_path_factory.mktemp("client exports") / "books"
    base.mkdir()
    save_contract_model(base / "5")
    return base


@pytest.fixture(scope="module")
def kit(export_folder):
    return write_kit(export_folder.parent / "kit", "books", export_folder)


def load_client(kit):
    spec = importlib.util.spec_from_file_location("client_of_a_kit", kit / "client.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_client_asks_every_signature_with_nothing_installed(kit, export_folder):
    with model_server({"books": export_folder}) as server:
        run = [sys.executable, "-I", "-S", kit / "client.py", "--url", server.url]
        done = subprocess.run(run, capture_output=True, text=True)
        texts = subprocess.run([*run, "a", "bcd"], capture_output=True, text=True)
        client = load_client(kit)
        client.MODEL = "shelf"
        with pytest.raises(client.ServerError, match="HTTP 404: .*Check the name"):
            client.call_model("predict", {"instances": ["a"]}, server.url)
    assert done.returncode == 0, done.stderr
    asked = {line.partition(":")[0] for line in done.stdout.splitlines()}
    assert asked == {one for one in Servable(export_folder / "5").signatures if one[:2] != "__"}
    assert texts.stdout.startswith("serving_default: [{") and '"upper": "BCD"' in texts.stdout


def test_the_client_repeats_what_may_pass_and_only_that(kit, monkeypatch):
    client = load_client(kit)
    waits, answers = [], []

    def send(*_):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(
        client, "time", SimpleNamespace(monotonic=time.monotonic, sleep=waits.append)
    )
    monkeypatch.setattr(client, "_send", send)
    answers += [client.ServerError("busy", True), client.ServerError("busy", True), ["yes"]]
    assert client.call_model("predict", {}) == ["yes"] and 0.15 <= sum(waits) <= 0.3
    for temporary, tries in ((True, 3), (False, 1)):
        answers[:] = [client.ServerError(f"no {number}", temporary) for number in range(5)]
        with pytest.raises(client.ServerError, match=f"no {tries - 1}"):
            client.call_model("predict", {}, retries=2)


def test_the_client_tells_that_no_answer_came(kit):
    client, (port,) = load_client(kit), free_ports(1)
    with pytest.raises(client.ServerError, match="gave no answer: .*refused") as caught:
        client.call_model("predict", {}, f"http://127.0.0.1:{port}", retries=0)
    assert caught.value.temporary
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with pytest.raises(client.ServerError, match="no answer within 0.1 s") as caught:
            client.call_model("predict", {}, url, timeout=0.1)
    assert not caught.value.temporary
