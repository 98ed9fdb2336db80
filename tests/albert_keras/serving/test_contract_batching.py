"""Requests that the contract server merges, as the model server does, and what goes wrong then."""

import threading
import time

import pytest

from albert_keras.serving.client.client_errors import ServingError
from albert_keras.serving.client.rest_client import RestClient
from tests.albert_keras.serving.contract.batching import BatchingParameters
from tests.albert_keras.serving.contract.model import save_contract_model
from tests.albert_keras.serving.contract.serving import serving, wait_for


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


def ask_together(client, *inputs, signature="serving_default"):
    """Returns for each of some requests sent at once its outputs or its ServingError."""
    answers = [None] * len(inputs)

    def ask(number):
        try:
            with RestClient(client.url, "model", retries=0) as own:
                answers[number] = own.predict(signature, **inputs[number])
        except ServingError as error:
            answers[number] = error

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(inputs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return answers


#: A batch goes when it is full, or after these microseconds.
FOUR_ROWS = BatchingParameters(max_batch_size=4, batch_timeout_micros=5_000_000)
TWO_ROWS = BatchingParameters(max_batch_size=2, batch_timeout_micros=5_000_000)


def test_requests_of_one_batch_get_their_own_rows(served):
    client = served[1](batching=FOUR_ROWS)
    wait_for("AVAILABLE", client, 1)
    answers = ask_together(client, {"text": ["a", "bb"]}, {"text": ["ccc"]}, {"text": ["dddd"]})
    assert [answer["length"] for answer in answers] == [[1, 2], [3], [4]]


def test_a_failing_request_fails_its_neighbours(served):
    client = served[1](batching=TWO_ROWS)
    wait_for("AVAILABLE", client, 1)
    answers = ask_together(client, {"text": ["a"]}, {"text": ["fail"]})
    assert [answer.code for answer in answers] == ["INVALID_ARGUMENT"] * 2


def test_ids_of_different_lengths_do_not_share_a_batch(served):
    client = served[1](batching=TWO_ROWS)
    wait_for("AVAILABLE", client, 1)
    inputs = ({"input_ids": [[1, 2]]}, {"input_ids": [[1, 2, 3]]})
    answers = ask_together(client, *inputs, signature="predict_tokens")
    assert all("have different shapes" in answer.message for answer in answers)


def test_a_request_larger_than_a_batch_is_refused(served):
    client = served[1](batching=FOUR_ROWS)
    wait_for("AVAILABLE", client, 1)
    with pytest.raises(ServingError, match="Task size 5 is larger"):
        client.predict(text=["a"] * 5)


def test_a_full_queue_is_unavailable(served):
    parameters = BatchingParameters(4, 400_000, max_enqueued_batches=1)
    client = served[1](batching=parameters)
    wait_for("AVAILABLE", client, 1)
    answers = ask_together(client, {"text": ["a"] * 3}, {"text": ["a"] * 3})
    refused = [answer for answer in answers if isinstance(answer, ServingError)]
    assert [error.http_status for error in refused] == [503]
    assert "batch scheduling queue" in refused[0].message


def test_waiting_past_the_deadline_exhausts(connect, served):
    client = served[1](batching=BatchingParameters(4, 150_000), timeout=0.05)
    end = time.monotonic() + 20
    while not client.status()[0].state == "AVAILABLE" and time.monotonic() < end:
        time.sleep(0.01)
    with pytest.raises(ServingError) as caught:
        connect(client.url, "model", retries=0).predict(text=["a"])
    assert (caught.value.http_status, caught.value.code) == (429, "RESOURCE_EXHAUSTED")
