"""The contract server follows the rules that the model server is known to follow."""

import shutil
import threading
import time

import grpc
import pytest

from albert_keras.serving.client.client_errors import ServingError
from albert_keras.serving.client.rest_client import RestClient
from albert_keras.serving.protocol.status import HTTP_STATUS, StatusError
from tests.albert_keras.serving.contract.batching import BatchingParameters
from tests.albert_keras.serving.contract.model import (
    predict_record,
    save_contract_model,
    write_warmup,
)
from tests.albert_keras.serving.contract.protos import PredictionLog
from tests.albert_keras.serving.contract.serving import serving, wait_for
from tests.albert_keras.serving.contract.versions import VersionPolicy, find_versions


@pytest.fixture(scope="module")
def contract_export(tmp_path_factory):
    """Returns a folder with version 1 of the ContractModel."""
    base = tmp_path_factory.mktemp("contract") / "model"
    base.mkdir()
    save_contract_model(base / "1")
    return base


@pytest.fixture
def served(contract_export, tmp_path):
    """Returns (folder with version 1, function that starts a server of it)."""
    with serving(contract_export, tmp_path / "model") as both:
        yield both


def add_version(base, number, warmup=(), source="1"):
    staging = base / f".{number}.tmp-1"
    shutil.copytree(base / source, staging)
    if warmup:
        write_warmup(staging, warmup)
    staging.rename(base / str(number))


def test_folders_are_versions_where_their_name_is_a_number(tmp_path):
    for name in ("1", "003", "+7", "-2", "v4", "0.5", ".6.tmp-12", "9" * 19, "9" * 18):
        (tmp_path / name).mkdir()
    assert sorted(find_versions(tmp_path)) == [-2, 1, 3, 7, int("9" * 18)]


@pytest.mark.parametrize(
    "policy, chosen",
    [
        (VersionPolicy(), [5]),
        (VersionPolicy(latest=2), [5, 3]),
        (VersionPolicy(specific=(1, 3, 8)), [3, 1]),
        (VersionPolicy(all=True), [5, 3, 1]),
    ],
)
def test_the_policy_chooses_versions(policy, chosen):
    assert policy.choose([1, 5, 3]) == chosen


def test_a_new_version_takes_over_and_the_old_one_goes(connect, served):
    base, serve = served
    client = serve()
    wait_for("AVAILABLE", client, 1)
    add_version(base, 2)
    wait_for("AVAILABLE", client, 2)
    wait_for("END", client, 1)
    with pytest.raises(ServingError, match="NOT_FOUND.*no version 1 that is loaded"):
        connect(client.url, "model", version=1).predict(text=["a"])
    shutil.rmtree(base / "2")
    wait_for("AVAILABLE", client, 1)


def test_the_old_version_answers_while_a_broken_one_does_not_load(served):
    base, serve = served
    client = serve()
    wait_for("AVAILABLE", client, 1)
    (base / "2").mkdir()
    shutil.copy(base / "1" / "saved_model.pb", base / "2")
    assert wait_for("END", client, 2).error
    time.sleep(0.1)  # a few rounds of the poller
    assert client.predict(text=["abc"])["length"] == [3]


def test_a_staging_folder_is_no_version(served):
    base, serve = served
    shutil.copytree(base / "1", base / ".2.tmp-77")
    client = serve()
    wait_for("AVAILABLE", client, 1)
    assert [one.version for one in client.status()] == [1]


def test_no_request_fails_while_versions_are_swapped(served):
    base, serve = served
    client = serve(batching=BatchingParameters(8, 500))
    wait_for("AVAILABLE", client, 1)
    failures, stop = [], threading.Event()

    def ask():
        with RestClient(client.url, "model", retries=0) as own:
            while not stop.is_set():
                try:
                    own.predict_rows(["a", "bc"])
                except ServingError as error:
                    failures.append(str(error))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for version in (2, 3):
        add_version(base, version)
        wait_for("AVAILABLE", client, version)
    stop.set()
    for thread in threads:
        thread.join(60)
    assert failures == []


def test_a_label_answers_for_its_version_once_that_is_loaded(connect, served):
    _, serve = served
    client = serve(labels={"stable": 1, "canary": 2})
    wait_for("AVAILABLE", client, 1)
    assert connect(client.url, "model", label="stable").predict(text=["a"])["length"] == [1]
    with pytest.raises(
        ServingError, match="INVALID_ARGUMENT.*no loaded version with the label `canary`"
    ):
        connect(client.url, "model", label="canary").predict(text=["a"])


@pytest.mark.parametrize(
    "record, message",
    [
        (predict_record("serving_default", text=["fail"]), "no fail"),
        (predict_record("not-there", text=["a"]), "signature `not-there` was not found"),
        (predict_record("pair", first=["a"]), "must be exactly first, second. Received: first"),
        (b"\xff no message", "parse warmup record 0"),
        (PredictionLog(session_run_log={}).SerializeToString(), "Unsupported log_type"),
    ],
    ids=["fails", "signature", "input", "no message", "kind"],
)
def test_a_warm_up_record_that_fails_fails_its_version(served, record, message):
    base, serve = served
    write_warmup(base / "1", [record])
    assert message in wait_for("END", serve(), 1).error


def test_warm_up_records_are_run_before_a_version_answers(served):
    base, serve = served
    log = PredictionLog()
    request = log.classify_log.request
    request.model_spec.signature_name = "classify"
    example = request.input.example_list.examples.add()
    example.features.feature["text"].bytes_list.value.append(b"a")
    records = [predict_record("serving_default", text=["a", "b"]), log.SerializeToString()]
    write_warmup(base / "1", records)
    wait_for("AVAILABLE", serve(batching=BatchingParameters(4, 0, 10, (1, 2, 4))), 1)


def test_more_warm_up_records_than_a_thousand_fail_a_version(served):
    base, serve = served
    write_warmup(base / "1", [predict_record("serving_default", text=["a"])] * 1001)
    assert "exceeds the maximum" in wait_for("END", serve(), 1).error


def test_a_strict_server_wants_the_method_name_of_a_signature(served):
    client = served[1](check_methods=True)
    wait_for("AVAILABLE", client, 1)
    assert client.classify([{"text": "a"}]) == [[["long", 1.0], ["short", -1.0]]]
    with pytest.raises(
        ServingError, match="method of the signature must be tensorflow/serving/regress"
    ):
        client.regress([{"text": "a"}], signature="classify")


def test_codes_have_the_http_status_of_the_server():
    by_status = {}
    for code, status in HTTP_STATUS.items():
        by_status.setdefault(status, set()).add(code)
    assert by_status == {
        200: {"OK"},
        400: {"INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE"},
        401: {"UNAUTHENTICATED"},
        403: {"PERMISSION_DENIED"},
        404: {"NOT_FOUND"},
        409: {"ALREADY_EXISTS", "ABORTED"},
        429: {"RESOURCE_EXHAUSTED"},
        499: {"CANCELLED"},
        500: {"INTERNAL", "UNKNOWN", "DATA_LOSS"},
        501: {"UNIMPLEMENTED"},
        503: {"UNAVAILABLE"},
        504: {"DEADLINE_EXCEEDED"},
    }


def test_codes_are_in_the_order_of_their_numbers_in_grpc():
    for number, code in enumerate(HTTP_STATUS):
        assert grpc.StatusCode[code].value[0] == number


def test_messages_are_cut():
    assert len(StatusError("INTERNAL", "a" * 2000).message) == 1024
