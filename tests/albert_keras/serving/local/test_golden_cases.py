"""The local server answers requests as the model server does."""

import json
from pathlib import Path

import pytest
import yaml

from tests.albert_keras.serving.local.running import ask

CASES = yaml.safe_load(Path(__file__).with_name("golden_cases.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_request_is_answered_as_by_the_model_server(server, case):
    path = case.get("path", ":predict")
    if not path.startswith("/v1/"):
        path = f"/v1/models/books{path}"
    body = case["body"].encode() if "body" in case else None
    headers = {"Content-Type": "application/json"}
    answer = ask(server, case.get("method", "POST"), path, body, headers)
    assert answer.status == case["status"]
    value = json.loads(answer.body.decode(errors="replace"))[case["key"]]
    if case["key"] == "error":
        assert isinstance(value, str) and value
    if "rows" in case:
        parts = value.values() if isinstance(value, dict) else [value]
        assert {len(part) for part in parts} == {case["rows"]}
