"""Addresses a local server may have, and its messages about them."""

import logging
import socket

import pytest

from albert_keras.serving.local.local_server import LocalServer, serve
from data_pipeline.errors import InputError
from tests.albert_keras.serving.local.client import ask
from tests.albert_keras.serving.local.conftest import running


@pytest.fixture
def no_loading(monkeypatch):
    """Models are not loaded: what is refused is refused before."""
    served_models = "albert_keras.serving.local.served_models"
    monkeypatch.setattr(f"{served_models}.ServedModel", lambda *_: pytest.fail("loaded"))


def test_a_taken_port_is_told_before_models_are_loaded(books, no_loading):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(InputError, match=f"`--port` must be a free port.*{port}"):
            LocalServer([books], port=port)


@pytest.mark.parametrize("port", [-1, 65536, "8501", True])
def test_a_port_is_a_number_of_one(books, no_loading, port):
    with pytest.raises(InputError, match="`--port` must be an int from 0 to 65535"):
        LocalServer([books], port=port)


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host", "a" * 70])
def test_a_host_is_an_address_of_this_computer(books, no_loading, host):
    with pytest.raises(InputError, match="`--host` must be an address of this computer"):
        LocalServer([books], host=host, port=0)


def test_an_address_for_others_is_warned_of(books, caplog):
    with caplog.at_level(logging.WARNING):
        with LocalServer([books], host="0.0.0.0", port=0):
            pass
        with LocalServer([books], port=0):
            pass
    (message,) = caplog.messages
    assert "Other computers can reach 0.0.0.0" in message and "server-kit" in message


def test_a_server_tells_when_it_is_ready_and_what_it_serves(books):
    class Enough(Exception):
        pass

    def ready(server):
        assert [(one.name, one.version) for one in server.models.values()] == [("books", 3)]
        assert server.url.startswith("http://127.0.0.1:") and server.url.endswith("/")
        raise Enough

    with pytest.raises(Enough):
        serve([books], port=0, ready=ready)


def test_a_server_that_is_stopped_answers_no_more(books):
    with running([books]) as server:
        assert ask(server, "GET", "/models.json").status == 200
    with pytest.raises(ConnectionRefusedError):
        ask(server, "GET", "/models.json")
