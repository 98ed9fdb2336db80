"""Golden cases and the check that runs them, against the contract server."""

import json
import time

import pytest

from albert_keras.serving.check.golden_cases import GOLDEN_CASES, applies, fill, judge, names_of
from albert_keras.serving.check.serve_check import serve_check
from albert_keras.serving.client.http_connection import HttpConnection
from albert_keras.serving.client.rest_client import RestClient, Signature
from data_pipeline.errors import InputError
from tests.albert_keras.serving.contract.batching import BatchingParameters
from tests.albert_keras.serving.contract.model import save_contract_model
from tests.albert_keras.serving.contract_server import ContractServer

BATCHING = BatchingParameters(4, 1000, 10, (1, 2, 4))
STRINGS = {"text": ("DT_STRING", (-1,))}


def started(base, **options):
    server = ContractServer({"model": base}, **options)
    client, end = RestClient(server.url, "model"), time.monotonic() + 20
    while time.monotonic() < end:
        if any(one.state == "AVAILABLE" for one in client.status()):
            return server
        time.sleep(0.01)
    raise AssertionError(client.status())


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    base = tmp_path_factory.mktemp("golden") / "model"
    base.mkdir()
    save_contract_model(base / "1")
    return base


@pytest.fixture(scope="module")
def server(base):
    with started(base) as server:
        yield server


@pytest.fixture(scope="module")
def names(server):
    return names_of(RestClient(server.url, "model").metadata())


@pytest.mark.parametrize("case", GOLDEN_CASES, ids=lambda case: case.name)
def test_the_contract_server_answers_as_it_should(case, server, names):
    assert applies(case, names)
    path, body = fill(case, "model", 1, names)
    assert "{" not in path
    answer = HttpConnection(server.url).request(case.method, path, body)
    assert judge(case, *answer) == ""


def test_cases_have_names_of_their_own():
    assert len({case.name for case in GOLDEN_CASES}) == len(GOLDEN_CASES) >= 40


def test_every_form_and_every_refusal_of_predict_classify_and_regress_is_asked():
    asked = {(case.path.rpartition(":")[2], case.key, case.status) for case in GOLDEN_CASES}
    assert asked >= {
        ("predict", "predictions", 200),
        ("predict", "outputs", 200),
        ("classify", "results", 200),
        ("regress", "results", 200),
        ("predict", "error", 400),
        ("predict", "error", 404),
        ("classify", "error", 400),
        ("regress", "error", 400),
    }


def test_batching_changes_the_answer_to_outputs_without_a_batch_only(base):
    with started(base, batching=BATCHING) as server:
        result = serve_check(server.url, "model", requests=0)
    assert [case.name for case in result.faults] == ["columns may differ in length"]
    assert "0th dimension" in result.faults[0].fault


def test_a_check_tells_cases_speed_and_failures(server):
    result = serve_check(server.url, "model", clients=3, requests=20)
    assert result.ok and result.version == 1 and result.signature == "serving_default"
    load = result.load
    assert (load.clients, load.requests, load.failures) == (3, 20, 0)
    assert 0 < load.latencies["50"] <= load.latencies["99"] <= load.latencies["100"]
    assert load.throughput == pytest.approx(20 / load.seconds)
    count = len(GOLDEN_CASES)
    assert result.lines[1] == f"golden cases: {count} of {count} as they should be"
    assert result.lines[2].startswith("20 requests to serving_default from 3 clients: ")
    assert result.lines[3].startswith("latency: median ")


def test_failures_under_load_are_counted(server):
    result = serve_check(server.url, "model", clients=2, requests=4, texts=["fail", "a"])
    assert not result.ok and result.load.failures == 2
    assert "no fail" in result.load.first_failure and result.lines[-1].startswith("first failure")


def test_a_text_that_cannot_be_sent_is_refused_before_any_is(server):
    with pytest.raises(InputError, match="half a character"):
        serve_check(server.url, "model", texts=["a", "\ud800"])


def test_cases_for_what_a_model_lacks_are_told_not_asked():
    names = names_of({"serving_default": Signature("predict", STRINGS, {"label": None})})
    assert (names.text, names.input, names.single, names.pair) == (
        "serving_default",
        "text",
        "serving_default",
        "",
    )
    left_out = {case.needs for case in GOLDEN_CASES if not applies(case, names)}
    assert left_out == {
        "pair", "tokens", "classify", "regress", "bytes", "uneven", "scalar", "not_finite"
    }  # fmt: skip


def test_no_case_of_a_model_without_text_asks_for_text():
    ids = {"ids": ("DT_INT64", (-1, -1)), "mask": ("DT_INT64", (-1, -1))}
    names = names_of({"predict_tokens": Signature("predict", ids, {"scores": None})})
    assert json.loads(names.ids) == {"ids": [[1, 1, 1]] * 2, "mask": [[1, 1, 1]] * 2}
    filled = [fill(case, "m", 3, names)[1] for case in GOLDEN_CASES if applies(case, names)]
    assert filled and not any(b'""' in body for body in filled if body)


GOOD = next(case for case in GOLDEN_CASES if case.name == "strings in rows")
REFUSED = next(case for case in GOLDEN_CASES if case.name == "no instances")


@pytest.mark.parametrize(
    "case, status, body, fault",
    [
        (GOOD, 200, b'{"predictions": ["a", "b"]}', ""),
        (GOOD, 200, b'{"predictions": [NaN, 1]}', ""),
        (GOOD, 404, b'{"error": "no"}', "status 404 instead of 200"),
        (GOOD, 200, b"<html>", "no JSON"),
        (GOOD, 200, b'{"outputs": ["a", "b"]}', "no key predictions"),
        (GOOD, 200, b'{"predictions": ["a"]}', "lengths {1} instead of 2"),
        (REFUSED, 400, b'{"error": "No values in it"}', ""),
        (REFUSED, 400, b'{"error": "something else"}', "does not say `no values`"),
    ],
)
def test_a_wrong_answer_is_told(case, status, body, fault):
    found = judge(case, status, body)
    assert found.startswith(fault) or (fault and fault in found)
    assert bool(found) == bool(fault)


def test_a_model_that_is_not_loaded_is_told(tmp_path):
    (tmp_path / "1").mkdir()
    with ContractServer({"model": tmp_path}) as server:
        client, end = RestClient(server.url, "model"), time.monotonic() + 20
        while client.status()[0].state != "END" and time.monotonic() < end:
            time.sleep(0.01)
        with pytest.raises(InputError, match="`model` at .* answers nothing yet: version 1 is END"):
            serve_check(server.url, "model")


@pytest.mark.parametrize("wrong", [{"clients": 0}, {"requests": -1}, {"texts": ()}])
def test_a_load_that_cannot_be_is_refused(wrong):
    with pytest.raises(InputError):
        serve_check("http://127.0.0.1:1", "model", **wrong)
