"""The reverse proxy of the kit lets through what the model is to answer, and nothing else."""

import json
import re
import shutil
import subprocess

import pytest

from albert_keras.serving.kit.server_kit import write_kit
from tests.albert_keras.serving.contract.model import save_contract_model


@pytest.fixture(scope="module")
def kit(tmp_path_factory):
    """Returns the folder of a kit."""
    base = tmp_path_factory.mktemp("exports") / "books"
    base.mkdir()
    save_contract_model(base / "1")
    return write_kit(base.parent / "kit", "books", base, rest_port=9001, proxy_port=9002)


def proxy_locations(kit):
    patterns = re.findall(r'location ~ "(.*)" \{', (kit / "nginx.conf").read_text())
    return [re.compile(pattern) for pattern in patterns]


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models/books:predict",
        "/v1/models/books/versions/5:classify",
        "/v1/models/books/labels/stable:regress",
        "/v1/models/books",
        "/v1/models/books/metadata",
        "/v1/models/books/versions/5",
    ],
)
def test_the_proxy_lets_questions_to_the_model_through(kit, path):
    assert any(pattern.search(path) for pattern in proxy_locations(kit))


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models/other:predict",
        "/v1/models/books2",
        "/v1/models",
        "/v1/models/books:explain",
        "/v1/models/books/versions/x:predict",
        "/v1/models/books/labels/../x:predict",
        "/v1/models/books:predict/more",
        "/monitoring/prometheus/metrics",
        "/x/v1/models/books",
    ],
)
def test_the_proxy_lets_nothing_else_through(kit, path):
    assert not any(pattern.search(path) for pattern in proxy_locations(kit))


def test_the_proxy_limits_bodies_and_listens_on_loopback(kit):
    text = (kit / "nginx.conf").read_text()
    for line in (
        "client_max_body_size 1m;",
        "client_body_buffer_size 1m;",
        "if ($http_content_encoding) { return 415",
        "listen 127.0.0.1:9002;",
        "server 127.0.0.1:9001;",
    ):
        assert line in text
    assert text.count("{") == text.count("}")


@pytest.mark.skipif(shutil.which("node") is None, reason="no node to run limits.js")
def test_the_proxy_refuses_deep_json_and_only_that(kit, tmp_path):
    shutil.copy(kit / "limits.js", tmp_path / "limits.mjs")
    bodies = {
        "[" * 32 + "]" * 32: "passed",
        "[" * 33: "400",
        '{"a":' * 33: "400",
        '"' + "[" * 99 + '"': "passed",
        '"\\"' + "[" * 99 + '"': "passed",
        '"\\\\"' + "[" * 99: "400",
        "[]" * 99: "passed",
        "": "passed",
    }
    script = f"""
        import limits from "./limits.mjs";
        for (const body of {json.dumps(list(bodies))}) limits.check({{
          requestBuffer: body ? Buffer.from(body) : undefined,
          return: (status) => console.log(status),
          internalRedirect: () => console.log("passed"),
        }});"""
    (tmp_path / "try.mjs").write_text(script)
    done = subprocess.run(["node", "try.mjs"], capture_output=True, text=True, cwd=tmp_path)
    assert done.stdout.split() == list(bodies.values()), done.stderr
