"""What is too large, too deep, too fast or from elsewhere is refused before it is read."""

import asyncio
import errno
import json
import os
import shutil
import socket
import subprocess

import pytest
from starlette.staticfiles import StaticFiles

from albert_keras.serving.local.limits import Limits
from albert_keras.serving.local.request_checks import RequestChecks, allowed_hosts, is_loopback
from tests.albert_keras.serving.local.client import (
    JSON,
    PREDICT,
    ask,
    port_of,
    predict,
    send_raw,
)
from tests.albert_keras.serving.local.conftest import running

GOOD = {"signature_name": "single", "instances": ["a"]}


def test_a_body_of_the_largest_size_is_taken_and_no_larger_one(server):
    content = json.dumps(GOOD).encode()
    assert predict(server, content.ljust(1 << 20)).status == 200
    answer = predict(server, content.ljust((1 << 20) + 1))
    assert (answer.status, answer.error) == (413, "A body must have at most 1048576 bytes.")
    assert predict(server, b"x" * (5 << 20)).status == 413


def test_chunks_are_counted(server):
    chunks = [b" " * (1 << 16)] * 40
    answer = ask(server, "POST", PREDICT, iter(chunks), JSON, encode_chunked=True)
    assert answer.status == 413
    content = json.dumps(GOOD).encode()
    answer = ask(
        server, "POST", PREDICT, iter([content[:9], content[9:]]), JSON, encode_chunked=True
    )
    assert answer.status == 200


def test_a_body_without_end_is_not_read_to_its_end(server):
    head = f"POST {PREDICT} HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunk = b"100000\r\n" + b" " * (1 << 20) + b"\r\n"
    with socket.create_connection(("127.0.0.1", port_of(server)), timeout=20) as connection:
        connection.sendall(head.encode())
        with pytest.raises(OSError):  # the server has closed
            for _ in range(100):
                connection.sendall(chunk)


@pytest.mark.parametrize("bracket", [b"[", b'{"a":'])
def test_deep_json_is_refused_and_the_server_lives(server, bracket):
    answer = predict(server, b'{"instances":' + bracket * 50_000)
    assert (answer.status, answer.error) == (400, "JSON must be nested at most 32 deep.")
    assert predict(server, GOOD).status == 200


def test_packed_bodies_are_refused(server):
    for encoding in ("gzip", "identity"):
        assert predict(server, GOOD, Content_Encoding=encoding).status == 415


def test_long_paths_are_refused(server):
    assert ask(server, "GET", "/" + "a" * 3000).status == 414
    assert ask(server, "GET", "/?" + "a" * 3000).status == 414
    assert ask(server, "GET", "/" + "a" * 100_000).status in (400, 414)


def test_a_large_head_in_one_packet_is_refused(server):
    line = b"GET /v1/models/books HTTP/1.1\r\nHost: localhost\r\n"
    many = b"".join(b"X-%d: aaaa\r\n" % number for number in range(1500))
    for headers in (b"X-Long: " + b"a" * 17_000 + b"\r\n", many):
        received = send_raw(server, line + headers + b"\r\n")
        assert received.startswith(b"HTTP/1.1 431") and b"at most 16384 bytes" in received
    answer = ask(server, "GET", "/v1/models/books", headers={"X-Long": "a" * 15_000})
    assert answer.status == 200


def test_a_name_that_is_too_long_for_a_file_does_not_exist(server, monkeypatch):
    for name in ("a" * 300, "%C3%A9" * 200, "a/" * 900, "a%00b"):
        assert ask(server, "GET", f"/page/{name}").status == 404

    def look_up(*_):  # as releases of starlette before 0.46, which do not check this
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))

    monkeypatch.setattr(StaticFiles, "lookup_path", look_up)
    answer = ask(server, "GET", "/page/" + "a" * 300)
    assert (answer.status, answer.error) == (404, "This address does not exist.")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:99", "LOCALHOST", "[::1]:8501", "[::1]"])
def test_the_server_has_the_names_of_loopback(server, host):
    assert ask(server, "GET", "/models.json", headers={"Host": host}).status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8501", "127.0.0.1.evil.example", "localhost.", "", "::1"]
)
def test_other_names_are_refused(server, host):
    answer = ask(server, "GET", "/models.json", headers={"Host": host})
    assert answer.status == 403 and "Host" in answer.error


def test_no_name_is_refused(server):
    assert send_raw(server, b"GET / HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "http://localhost:3000"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site", "Sec_Fetch_Mode": "navigate"},
    ],
)
def test_other_pages_may_not_ask(server, headers):
    assert predict(server, GOOD, **headers).status == 403


def test_the_own_page_may_ask_and_links_to_it_work(server):
    own = {"Origin": server.url.rstrip("/"), "Sec_Fetch_Site": "same-origin"}
    assert predict(server, GOOD, **own).status == 200
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert ask(server, "GET", "/", headers=link).status == 200


#: What `curl --data` sends without `--header`.
CURL = {
    "User_Agent": "curl/7.88.1",
    "Accept": "*/*",
    "Content_Type": "application/x-www-form-urlencoded",
}
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:60.0) Gecko/20100101 Firefox/60.0"


@pytest.mark.parametrize("content_type", [CURL["Content_Type"], "text/plain; charset=utf-8"])
def test_plain_curl_is_answered(server, content_type):
    answer = predict(server, GOOD, **CURL | {"Content_Type": content_type})
    assert answer.status == 200 and json.loads(answer.body) == {"predictions": [1]}


@pytest.mark.skipif(shutil.which("curl") is None, reason="no curl on the PATH")
def test_the_command_of_the_tutorials_is_answered(server):
    url = f"{server.url}v1/models/books:predict"
    body = '{"signature_name": "single", "instances": ["a", "bcd"]}'
    done = subprocess.run(["curl", "-s", "-d", body, "-X", "POST", url], capture_output=True)
    assert json.loads(done.stdout) == {"predictions": [1, 3]}


@pytest.mark.parametrize("content_type", ["", "text/plain", "application/x-www-form-urlencoded"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example", "Sec_Fetch_Site": "cross-site"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "none", "Sec_Fetch_Mode": "navigate"},
        {"Referer": "http://evil.example/"},
        {"User_Agent": FIREFOX},  # old versions send a form without any of the headers above
    ],
)
def test_forms_of_pages_are_refused(server, headers, content_type):
    answer = predict(server, GOOD, **headers, Content_Type=content_type)
    assert answer.status in (403, 415)


def test_not_even_the_own_page_sends_forms(server):
    own = {"Origin": server.url.rstrip("/"), "Sec_Fetch_Site": "same-origin"}
    answer = predict(server, GOOD, **own, Content_Type="text/plain")
    assert answer.status == 415 and "`Content-Type: application/json`" in answer.error


def test_a_rebound_name_is_refused_whatever_the_type(server):
    for content_type in ("application/json", CURL["Content_Type"]):
        headers = CURL | {"Host": "evil.example", "Content_Type": content_type}
        assert predict(server, GOOD, **headers).status == 403


@pytest.mark.parametrize("content_type", ["multipart/form-data; boundary=a", "application/xml"])
def test_types_that_are_no_json_are_refused(server, content_type):
    answer = predict(server, GOOD, Content_Type=content_type)
    assert answer.status == 415 and "`Content-Type: application/json`" in answer.error


def test_a_type_may_have_a_character_set_or_be_left_out(server):
    assert predict(server, GOOD, Content_Type="Application/JSON; charset=utf-8").status == 200
    assert ask(server, "POST", PREDICT, json.dumps(GOOD).encode()).status == 200


def test_bytes_that_are_no_http_are_answered_with_json(server):
    for data in (b"GET /\0 HTTP/1.1\r\nHost: localhost\r\n\r\n", b"\x16\x03\x01\r\n\r\n"):
        received = send_raw(server, data)
        assert received.startswith(b"HTTP/1.1 400") and b'{"error": ' in received


def through(checks, **scope):
    """Sends a GET through the checks and returns the messages of its answer."""
    sent = []

    async def receive():
        return {"type": "http.request", "body": b""}

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"localhost")]
    scope = {"type": "http", "method": "GET", "raw_path": b"/", "headers": headers, **scope}
    asyncio.run(checks({"query_string": b"", "client": ("127.0.0.1", 1), **scope}, receive, send))
    return sent


def test_a_client_that_asks_too_often_has_to_wait():
    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200, "headers": []})

    checks = RequestChecks(
        app, Limits(requests_per_second=0.1, burst=2), allowed_hosts("127.0.0.1")
    )
    evil = [(b"host", b"evil.example")]
    assert [through(checks, headers=evil)[0]["status"] for _ in range(3)] == [403] * 3
    assert [through(checks)[0]["status"] for _ in range(2)] == [200, 200]  # 403 took no token
    start, body = through(checks)
    assert start["status"] == 429 and b"Too many requests" in body["body"]
    assert 9 <= int(dict(start["headers"])[b"retry-after"]) <= 10
    assert through(checks, client=("127.0.0.2", 1))[0]["status"] == 200


def test_an_address_for_others_may_have_any_name():
    assert is_loopback("127.0.0.1") and is_loopback("::1") and is_loopback("localhost")
    assert not is_loopback("0.0.0.0") and not is_loopback("myhost") and not is_loopback("::")
    assert allowed_hosts("0.0.0.0") is None
    assert allowed_hosts("127.0.0.2") == {"127.0.0.1", "localhost", "[::1]", "127.0.0.2"}


def test_a_client_cannot_pretend_to_be_another(books):
    with running([books], requests_per_second=0.01, burst=1) as server:
        assert ask(server, "GET", "/models.json").status == 200
        other = {"X-Forwarded-For": "10.0.0.1", "Forwarded": "for=10.0.0.1"}
        assert ask(server, "GET", "/models.json", headers=other).status == 429
