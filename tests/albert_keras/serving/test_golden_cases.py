"""Golden cases and the check that runs them, against the model server."""

import contextlib
import importlib
import json
import time
from pathlib import Path

import pytest
import tensorflow as tf

from albert_keras.serving.check.golden_cases import (
    GOLDEN_CASES,
    GRPC_CASES,
    applies,
    fill,
    judge,
    names_of,
    read_cases,
)
from albert_keras.serving.check.serve_check import serve_check
from albert_keras.serving.client.rest_client import Answer, HttpConnection, RestClient, Signature
from data_pipeline.errors import InputError
from tests.albert_keras.serving.contract.batching import BatchingParameters
from tests.albert_keras.serving.contract.model import save_contract_model
from tests.albert_keras.serving.contract_server import ContractServer
from tests.albert_keras.serving.real_server import model_server

#: Cases of signatures that no export has, and the names of these.
TEST_MODEL_CASES = read_cases(
    Path(__file__).with_name("golden_cases_of_test_models.yaml").read_text(encoding="utf-8")
)
TEST_MODEL_NAMES = {name: name for name in ("uneven", "scalar", "not_finite")}
BATCHING = BatchingParameters(4, 1000, 10, (1, 2, 4))
STRINGS = {"text": ("DT_STRING", (-1,))}
#: What the server promises of forms and codes -> cases that ask it, or `module:test` where no
#: server can be asked without harm to its other users.
PROMISES = {
    "predict, classify and regress": "strings in rows, classify, regress",
    "a version and a label in the path": "a version, a label, an unknown version, an unknown label",
    "status and metadata": "status, status of a label, metadata, metadata of a version",
    "rows": "strings in rows, one row, named inputs in rows, pairs in rows",
    "columns": "inputs without a name, named inputs, pairs as inputs, ids as inputs",
    "the name of a single output is dropped": "a single output has no name in rows, "
    "a single output has no name in columns",
    "outputs of rows have one length": "rows of outputs that differ in length, "
    "rows of an output without a batch, columns of different lengths",
    "rows or columns, not both": "both instances and inputs, neither instances nor inputs",
    "instances have one shape": "rows of different lengths, a list among strings, "
    "lists of texts of different lengths, lists of different lengths",
    "results of examples, with a context": "classify with a context, examples as an object",
    "base64 for any input of strings": "base64 in rows, base64 in inputs, base64 in a named input",
    "base64 of the standard alphabet": "URL-safe base64",
    "base64 for outputs named *_bytes": "an output named *_bytes is returned as base64",
    "NaN and Infinity": "NaN and Infinity without quotes",
    "UTF-8 is not checked": "a byte that is not UTF-8 in the body",
    "errors are JSON": "not JSON, an unknown method, GET instead of POST",
    "HTTP status of codes": "test_contract_server:test_codes_have_the_http_status_of_the_server",
    "not found": "unknown model, unknown version, an unknown model, status of an unknown version",
    "unknown signature": "unknown signature, unknown signature of classify, an unknown signature, "
    "unknown signature of regress, classify with an unknown signature",
    "inputs and outputs": "missing input, extra input, unknown output, output requested twice",
    "type and rank": "wrong type, wrong rank, rank 0, strings of rank 2, a number for a string",
    "no examples": "no examples to classify, no examples for regress, classify with empty examples",
    "rows of inputs differ": "inputs with different numbers of rows",
    "batching, inputs": "test_grpc_client:test_batching_refuses_inputs_that_do_not_go_together",
    "batching, shapes": "test_contract_batching:test_ids_of_different_lengths_do_not_share_a_batch",
    "batching, full": "test_contract_batching:test_a_full_queue_is_unavailable",
    "batching, late": "test_contract_batching:test_waiting_past_the_deadline_exhausts",
    "messages are cut": "message of a long name",
    "size of messages": "test_grpc_client:test_too_long_an_answer_is_refused_once",
    "time-out": "test_rest_client:test_no_answer_in_time_is_told_and_not_repeated",
}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    base = tmp_path_factory.mktemp("golden") / "model"
    base.mkdir()
    save_contract_model(base / "1")
    return base


class ListModel(tf.Module):
    """Counts options, as a model of multiple choice takes them."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, name="question"),
            tf.TensorSpec([None, None], tf.string, name="options"),
        ]
    )
    def choose(self, question, options):
        return {"question": question, "count": tf.reduce_sum(tf.strings.length(options), axis=1)}


@pytest.fixture(scope="module")
def server(base, tmp_path_factory):
    lists, module = tmp_path_factory.mktemp("lists"), ListModel()
    tf.saved_model.save(module, str(lists / "1"), {"serving_default": module.choose})
    models = {"model": {"base_path": base, "labels": {"stable": 1}}, "lists": lists}
    with model_server(models) as server:
        yield server


@pytest.fixture(scope="module")
def names_by_model(server):
    with RestClient(server.url, "model") as model, RestClient(server.url, "lists") as lists:
        return {
            "model": names_of(model.metadata(), label="stable") | TEST_MODEL_NAMES,
            "lists": names_of(lists.metadata()),
        }


def request_once(server, *request):
    """Sends one request over a connection of its own, and returns the Answer."""
    with contextlib.closing(HttpConnection(server.url)) as connection:
        return connection.request(*request)


@pytest.mark.parametrize("case", GOLDEN_CASES + TEST_MODEL_CASES, ids=lambda case: case.name)
def test_the_server_answers_as_it_should(case, server, names_by_model):
    model = "lists" if case.needs == "lists" else "model"
    names = names_by_model[model]
    assert applies(case, names)
    path, body = fill(case, model, 1, names)
    assert "{" not in path
    answer = request_once(server, case.method, path, body)
    assert judge(case, *answer) == ""


@pytest.mark.parametrize("promise", PROMISES)
def test_every_promise_of_the_server_is_asked(promise):
    known = {case.name for case in GOLDEN_CASES + TEST_MODEL_CASES + GRPC_CASES}
    for name in PROMISES[promise].split(", "):
        module, _, test = name.rpartition(":")
        if module:
            assert hasattr(importlib.import_module(f"{__package__}.{module}"), test)
        else:
            assert name in known


def test_a_feature_that_an_example_lacks_is_refused_by_the_model(server):
    body = b'{"signature_name": "classify", "examples": [{}]}'
    answer = request_once(server, "POST", "/v1/models/model:classify", body)
    assert answer.status == 400 and "error" in json.loads(answer.body)


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
    with model_server({"model": base}, batching=BATCHING) as server:
        result = serve_check(server.url, "model", requests=0)
        assert result.ok, result.faults
        faults = []
        for case in TEST_MODEL_CASES:
            path, body = fill(case, "model", 1, TEST_MODEL_NAMES)
            answer = request_once(server, case.method, path, body)
            if fault := judge(case, *answer):
                faults.append((case.name, fault))
    ((name, fault),) = faults
    assert name == "columns of different lengths" and "0th dimension" in fault


def test_a_check_tells_cases_speed_and_failures(server):
    result = serve_check(server.url, "model", clients=3, requests=20)
    assert result.ok and result.version == 1 and result.signature == "serving_default"
    load = result.load
    assert (load.clients, load.requests, load.failures) == (3, 20, 0)
    assert 0 < load.latencies["50"] <= load.latencies["99"] <= load.latencies["100"]
    assert load.throughput == pytest.approx(20 / load.seconds)
    count = sum(case.needs not in ("lists", "label") for case in GOLDEN_CASES)
    assert result.lines[1] == f"golden cases: {count} of {count} passed"
    assert result.lines[2] == "skipped: 4, because the model has no label, lists"
    lines = result.lines[3:]
    assert lines[0].startswith("20 requests to serving_default over REST from 3 clients: ")
    assert lines[1].startswith("latency: median ") and len(lines) == 2


def test_failures_under_load_are_counted(server):
    result = serve_check(server.url, "model", clients=2, requests=4, texts=["fail", "a"])
    assert not result.ok and result.load.failures == 2
    assert "no fail" in result.load.first_failure and result.lines[-1].startswith("first failure")


def test_a_text_that_cannot_be_sent_is_refused_before_any_is(server):
    with pytest.raises(InputError, match="half a surrogate pair"):
        serve_check(server.url, "model", texts=["a", "\ud800"])


def test_cases_for_what_a_model_lacks_are_told_not_asked():
    names = names_of({"serving_default": Signature("predict", STRINGS, {"label": None})})
    assert names["text"] == names["single"] == "serving_default"
    assert names["input"] == names["single_input"] == "text" and "pair" not in names
    left_out = {case.needs for case in GOLDEN_CASES if not applies(case, names)}
    assert left_out == {
        "pair", "lists", "tokens", "classify", "regress", "bytes", "label",
    }  # fmt: skip


def test_no_case_of_a_model_without_text_asks_for_text():
    ids = {"ids": ("DT_INT64", (-1, -1)), "mask": ("DT_INT64", (-1, -1))}
    names = names_of({"predict_tokens": Signature("predict", ids, {"scores": None})})
    assert json.loads(names["ids"]) == {"ids": [[1, 1, 1]] * 2, "mask": [[1, 1, 1]] * 2}
    filled = [fill(case, "m", 3, names)[1] for case in GOLDEN_CASES if applies(case, names)]
    assert filled and not any(b'""' in body for body in filled if body)


GOOD = next(case for case in GOLDEN_CASES if case.name == "strings in rows")
REFUSED = next(case for case in GOLDEN_CASES if case.name == "no instances")
BYTES = next(case for case in GOLDEN_CASES if case.needs == "bytes")


@pytest.mark.parametrize(
    "case, status, body, fault",
    [
        (GOOD, 200, b'{"predictions": ["a", "b"]}', ""),
        (GOOD, 200, b'{"predictions": [NaN, 1]}', ""),
        (GOOD, 404, b'{"error": "no"}', "expected status 200, received 404"),
        (GOOD, 200, b"<html>", "expected JSON, received: <html>"),
        (GOOD, 200, b'{"outputs": ["a", "b"]}', "expected the key `predictions`"),
        (GOOD, 200, b'{"predictions": ["a"]}', "expected 2 rows, received {1}"),
        (REFUSED, 400, b'{"error": "No values in it"}', ""),
        (REFUSED, 400, b'{"error": "Any words."}', ""),
        (REFUSED, 400, b'{"error": ""}', "expected a message"),
        (REFUSED, 400, b'{"message": "No values in it"}', "expected the key `error`"),
        (REFUSED, 404, b'{"error": "No values in it"}', "expected status 400, received 404"),
        (REFUSED, 500, b'{"error": "No values in it"}', "expected status 400, received 500"),
        (REFUSED, 200, b'{"predictions": []}', "expected status 400, received 200"),
        (BYTES, 200, b'{"predictions": [{"text_bytes": "//79"}]}', "expected `b64`"),
    ],
)
def test_a_wrong_answer_is_told(case, status, body, fault):
    found = judge(case, status, body)
    assert found.startswith(fault) or (fault and fault in found)
    assert bool(found) == bool(fault)


def cases_where(condition):
    """Returns the names of the cases of a model without lists that meet a condition."""
    return {case.name for case in GOLDEN_CASES if condition(case) and case.needs != "lists"}


REFUSALS = cases_where(lambda case: case.key == "error")
ANSWERS = cases_where(lambda case: case.key != "error")
NOT_FOUND = cases_where(lambda case: case.status == 404)


@pytest.mark.parametrize(
    "change, faults",
    [
        (lambda status, body: (200, b'{"predictions": ["a", "b"]}'), REFUSALS),
        (lambda status, body: (400, b'{"error": "no"}'), ANSWERS | NOT_FOUND),
        (lambda status, body: (404, b'{"error": "no"}'), ANSWERS | REFUSALS - NOT_FOUND),
        (lambda status, body: (500 if status >= 400 else 200, body), REFUSALS),
        (lambda status, body: (status, body if status == 200 else b"{}"), REFUSALS),
        (lambda status, body: (status, b"{}" if status == 200 else body), ANSWERS),
    ],
    ids=["accepts all", "refuses all", "finds nothing", "fails", "says nothing", "is empty"],
)
def test_a_wrong_server_fails_every_case_that_it_answers_wrongly(
    server, monkeypatch, change, faults
):
    class WrongConnection(HttpConnection):
        def request(self, *args):
            return Answer(*change(*super().request(*args)))

    module = "albert_keras.serving.check.serve_check"
    monkeypatch.setattr(f"{module}.HttpConnection", WrongConnection)
    result = serve_check(server.url, "model", requests=0, label="stable")
    assert not result.ok and {case.name for case in result.faults} >= faults


def test_a_model_that_is_not_loaded_is_told(connect, tmp_path):
    (tmp_path / "1").mkdir()
    with ContractServer({"model": tmp_path}) as server:
        client, end = connect(server.url, "model"), time.monotonic() + 20
        while client.status()[0].state != "END" and time.monotonic() < end:
            time.sleep(0.01)
        with pytest.raises(
            InputError, match="`model` at .* no version that answers: version 1 is END"
        ):
            serve_check(server.url, "model")


@pytest.mark.parametrize("wrong", [{"clients": 0}, {"requests": -1}, {"texts": ()}])
def test_a_load_that_cannot_be_is_refused(wrong):
    with pytest.raises(InputError):
        serve_check("http://127.0.0.1:1", "model", **wrong)
