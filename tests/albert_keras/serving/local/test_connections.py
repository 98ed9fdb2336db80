"""Connections that keep the server waiting are closed, and there are not too many."""

import http.client
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from albert_keras.serving.protocol import rest_routes
from tests.albert_keras.serving.local.client import JSON, PREDICT, ask, port_of, send_raw
from tests.albert_keras.serving.local.conftest import running


def test_a_head_that_does_not_come_is_not_waited_for(server):
    for part in (b"", b"GET / HTTP/1.1\r\nHost: loc"):
        begin = time.monotonic()
        received = send_raw(server, part)
        assert received.startswith(b"HTTP/1.1 408") and b'{"error": "The head' in received
        assert 0.4 < time.monotonic() - begin < 15


def test_a_head_that_comes_byte_by_byte_is_not_waited_for(server):
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", port_of(server)), timeout=20) as connection:
        try:
            for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A" * 400:
                connection.sendall(bytes([byte]))
                time.sleep(0.05)
        except OSError:
            pass
    assert time.monotonic() - begin < 15  # all bytes take 21


def test_a_second_head_that_does_not_come_is_not_waited_for(server):
    first = b"GET /v1/models/books HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with socket.create_connection(("127.0.0.1", port_of(server)), timeout=20) as connection:
        connection.sendall(first)
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200")
        begin = time.monotonic()
        connection.sendall(first[:9])
        received = connection.recv(1 << 16)
        while not received.startswith(b"HTTP/1.1 408"):  # the rest of the first answer
            received = connection.recv(1 << 16)
            assert received
    assert 0.4 < time.monotonic() - begin < 15


def test_a_body_that_does_not_come_is_not_waited_for(server):
    head = f"POST {PREDICT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n"
    received = send_raw(server, head.encode() + b"{")
    assert received.startswith(b"HTTP/1.1 408") and b"The body must arrive" in received


def test_a_chunk_that_is_none_is_refused(server):
    head = f"POST {PREDICT} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    received = send_raw(server, head.encode() + b"zz\r\n")
    assert received.startswith(b"HTTP/1.1 400") and received.count(b"HTTP/1.1") == 1


def test_a_connection_too_many_is_told_so_and_others_go_on(books):
    with running([books], connections=2, yielding_seconds=60) as server:
        kept = [http.client.HTTPConnection("127.0.0.1", port_of(server)) for _ in range(2)]
        for connection in kept:
            connection.request("GET", "/v1/models/books")
            assert connection.getresponse().read()
        answer = ask(server, "GET", "/v1/models/books")
        assert answer.status == 503 and answer.error == "Too many connections."
        kept[0].request("GET", "/v1/models/books")
        assert kept[0].getresponse().read()
        for connection in kept:
            connection.close()
        end = time.monotonic() + 10
        while ask(server, "GET", "/v1/models/books").status == 503:
            assert time.monotonic() < end


def test_slow_clients_make_room_for_others(books):
    limits = {"receiving_seconds": 60, "waiting_seconds": 60}
    with running([books], connections=3, yielding_seconds=0.2, **limits) as server:
        head = f"POST {PREDICT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n".encode()
        slow = [b"", b"GET / HTTP/1.1\r\nHost: loc", head + b"{"]
        connections = []
        for sent in slow:
            connection = socket.create_connection(("127.0.0.1", port_of(server)), timeout=20)
            connection.sendall(sent)
            connections.append(connection)
        time.sleep(0.5)
        for connection in connections:  # each request closes the one that has waited longest
            assert ask(server, "GET", "/v1/models/books").status == 200
            # Another slow one takes the place of the answered request.
            connections.append(socket.create_connection(("127.0.0.1", port_of(server))))
            time.sleep(0.5)
            assert _is_closed(connection)
            if len(connections) == 2 * len(slow):
                break
        for connection in connections:
            connection.close()


def test_a_client_that_does_not_read_makes_room(books, monkeypatch):
    large = b'"' + b" " * (16 << 20) + b'"'
    monkeypatch.setattr(rest_routes, "answer", lambda *_: (200, large))
    with running([books], connections=1, yielding_seconds=0.2, waiting_seconds=60) as server:
        request = b"GET /v1/models/books HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        with socket.create_connection(("127.0.0.1", port_of(server)), timeout=20) as connection:
            connection.sendall(request)
            time.sleep(0.5)
            assert ask(server, "GET", "/").status == 200


def test_a_request_in_progress_keeps_its_place(books, monkeypatch):
    begun, end = threading.Event(), threading.Event()

    def answer(*_):
        begun.set()
        end.wait(20)
        return 200, b"{}"

    monkeypatch.setattr(rest_routes, "answer", answer)
    with running([books], connections=1, yielding_seconds=0.01) as server:
        with ThreadPoolExecutor(1) as executor:
            answered = executor.submit(ask, server, "POST", PREDICT, b"{}", JSON)
            assert begun.wait(20)
            time.sleep(0.1)
            assert ask(server, "GET", "/").status == 503
            end.set()
            assert answered.result(60).status == 200


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_server_that_stops_answers_requests_in_progress_for_some_time(
    books, monkeypatch, is_answered
):
    begun, end = threading.Event(), threading.Event()

    def answer(*_):
        begun.set()
        end.wait(2 if is_answered else 20)
        return 200, b"{}"

    monkeypatch.setattr(rest_routes, "answer", answer)
    seconds = 20 if is_answered else 0.2
    with ThreadPoolExecutor(1) as executor:
        with running([books], draining_seconds=seconds) as server:
            answered = executor.submit(ask, server, "POST", PREDICT, b"{}", JSON)
            assert begun.wait(20)
            server.stop()
            if not is_answered:
                assert answered.result(timeout=15).status == 500
                end.set()
        if is_answered:
            assert answered.result(60).status == 200


def _is_closed(connection):
    connection.settimeout(5)
    try:
        return connection.recv(1 << 16) == b""
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
