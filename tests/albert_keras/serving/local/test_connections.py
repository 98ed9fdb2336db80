"""Connections that keep the server waiting are closed, and there are not too many."""

import http.client
import socket
import time

from tests.albert_keras.serving.local.client import PREDICT, ask, port_of, send_raw
from tests.albert_keras.serving.local.conftest import running


def test_a_head_that_does_not_come_is_not_waited_for(server):
    for part in (b"", b"GET / HTTP/1.1\r\nHost: loc"):
        begin = time.monotonic()
        received = send_raw(server, part)
        assert received.startswith(b"HTTP/1.1 408") and b'{"error": "The head' in received
        assert 0.4 < time.monotonic() - begin < 5


def test_a_head_that_comes_byte_by_byte_is_not_waited_for(server):
    begin = time.monotonic()
    with socket.create_connection(("127.0.0.1", port_of(server)), timeout=20) as connection:
        try:
            for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\n":
                connection.sendall(bytes([byte]))
                time.sleep(0.05)
        except OSError:
            pass
    assert time.monotonic() - begin < 1.4


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
    assert 0.4 < time.monotonic() - begin < 4


def test_a_body_that_does_not_come_is_not_waited_for(server):
    head = f"POST {PREDICT} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n"
    received = send_raw(server, head.encode() + b"{")
    assert received.startswith(b"HTTP/1.1 408") and b"The body must arrive" in received


def test_a_chunk_that_is_none_is_refused(server):
    head = f"POST {PREDICT} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    received = send_raw(server, head.encode() + b"zz\r\n")
    assert received.startswith(b"HTTP/1.1 400") and received.count(b"HTTP/1.1") == 1


def test_a_connection_too_many_is_told_so_and_others_go_on(books):
    with running([books], connections=2) as server:
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
