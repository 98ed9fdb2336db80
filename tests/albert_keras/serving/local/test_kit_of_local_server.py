"""The proxy and the readiness check of a server kit, in front of a local server."""

import contextlib
import json
import re
import shutil
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from albert_keras.serving.client.rest_client import RestClient
from albert_keras.serving.kit.server_kit import write_kit
from tests.albert_keras.serving.local.client import JSON, PREDICT, ask, port_of
from tests.albert_keras.serving.real_server import free_ports

NJS = Path("/usr/lib/nginx/modules/ngx_http_js_module.so")


@pytest.fixture(scope="module")
def kit(server, books, tmp_path_factory):
    """Returns a kit whose REST port is the one of the local server, and the port of its proxy."""
    proxy_port, grpc_port = free_ports(2)
    ports = {"rest_port": port_of(server), "grpc_port": grpc_port, "proxy_port": proxy_port}
    folder = tmp_path_factory.mktemp("kits") / "kit"
    return write_kit(folder, "books", books / "3", **ports), proxy_port


def sent_headers(kit, location, client):
    """Returns the headers that nginx sends at a location, for the headers of a client."""
    text = (kit[0] / "nginx.conf").read_text()
    block = re.search(rf"location {re.escape(location)}.*?\n    }}", text, re.DOTALL)[0]
    setting = r'proxy_set_header (\S+) (?:"(.*?)"|(\S+));'
    # Settings of a location replace all settings outside of it.
    found = re.findall(setting, block) or re.findall(setting, text.split("  server {")[0])
    given = {name: quoted or plain for name, quoted, plain in found}
    variables = {"$proxy_host": "model_server", "$http_host": client["Host"]}
    headers = {**client, "Host": "$proxy_host", **given}
    return {name: variables.get(value, value) for name, value in headers.items() if value}


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:8080"])
def test_what_the_proxy_sends_is_answered(kit, server, host):
    headers = sent_headers(kit, "@model_server", {"Host": host, "User-Agent": "curl/8", **JSON})
    body = json.dumps({"signature_name": "single", "instances": ["abc"]})
    answer = ask(server, "POST", PREDICT, body, headers)
    assert (answer.status, json.loads(answer.body)) == (200, {"predictions": [3]})
    headers = sent_headers(kit, '~ "^/v1/models/books(/versions/', {"Host": host})
    assert ask(server, "GET", "/v1/models/books", headers=headers).status == 200


def test_the_proxy_does_not_hide_a_foreign_name(kit, server):
    headers = sent_headers(kit, "@model_server", {"Host": "evil.example:8080", **JSON})
    assert ask(server, "POST", PREDICT, b"{}", headers).status == 403


@contextlib.contextmanager
def nginx(folder):
    """Runs nginx with the settings of a kit."""
    command = ["nginx", "-e", "stderr", "-p", folder, "-c", "nginx.conf", "-g", "daemon off;"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            for _ in range(100):
                assert process.poll() is None, process.stderr.read()
                if (folder / "nginx.pid").is_file():
                    break
                time.sleep(0.05)
            yield
        finally:
            process.terminate()
            process.wait(20)


@pytest.mark.skipif(not (shutil.which("nginx") and NJS.exists()), reason="no nginx with njs")
def test_nginx_reaches_the_local_server(kit):
    folder, proxy_port = kit
    url = f"http://127.0.0.1:{proxy_port}"
    with nginx(folder), RestClient(url, "books") as client:
        assert [one.state for one in client.status()] == ["AVAILABLE"]
        assert "pair" in client.metadata()
        assert client.predict("single", text=["a", "bcd"]) == {"length": [1, 3]}
        request = urllib.request.Request(f"{url}{PREDICT}", b"[" * 33, JSON)
        with pytest.raises(urllib.error.HTTPError) as error:
            urllib.request.urlopen(request, timeout=20)
        assert error.value.code == 400 and b"too deeply" in error.value.read()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash on the PATH")
def test_the_readiness_check_waits_for_the_model(kit, server, books, tmp_path):
    def code(folder, port):
        run = ["bash", folder / "ready.sh", str(port)]
        return subprocess.run(run, timeout=20, capture_output=True).returncode

    assert code(kit[0], port_of(server)) == 0
    assert code(write_kit(tmp_path / "kit", "shelf", books / "3"), port_of(server)) == 1
    assert code(kit[0], free_ports(1)[0]) == 1
