"""The gRPC client against the model server; needs `tensorflow-serving-api`."""

import socket

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.serving.check.golden_cases import (
    GRPC_CASES,
    GrpcCase,
    check_grpc_case,
    names_of,
)
from albert_keras.serving.check.serve_check import serve_check
from albert_keras.serving.client.client_errors import ServingError
from albert_keras.serving.client.grpc_client import GrpcClient
from data_pipeline.errors import InputError
from tests.albert_keras.serving.contract.batching import BatchingParameters
from tests.albert_keras.serving.contract.model import save_contract_model
from tests.albert_keras.serving.real_server import model_server


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    base = tmp_path_factory.mktemp("grpc") / "model"
    base.mkdir()
    save_contract_model(base / "1")
    return base


@pytest.fixture(scope="module")
def server(base):
    with model_server({"model": base}, labels={"stable": 1}) as server:
        yield server


@pytest.fixture
def client(server):
    with GrpcClient(server.grpc_target, "model", timeout=20) as client:
        yield client


def example(text):
    feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[text]))
    return tf.train.Example(features=tf.train.Features(feature={"text": feature}))


def test_both_clients_get_the_same_answers(connect, server, client):
    rest = connect(server.url, "model")
    asked = [
        ("serving_default", {"text": ["a", "bé"]}),
        ("predict_tokens", {"input_ids": [[1, 2]]}),
    ]
    for signature, inputs in asked:
        over_grpc, over_rest = (
            client.predict(signature, **inputs),
            rest.predict(signature, **inputs),
        )
        assert over_grpc.keys() == over_rest.keys()
        for name, array in over_grpc.items():
            values = np.char.decode(array.astype(bytes)) if array.dtype == object else array
            assert values.tolist() == over_rest[name]
    assert client.metadata() == rest.metadata()
    assert client.status() == rest.status()
    rows = rest.classify([{"text": "a"}])
    assert client.classify([example(b"a")]) == [[tuple(one) for one in row] for row in rows]
    assert client.regress([example(b"abc")]) == rest.regress([{"text": "abc"}])


def test_bytes_come_as_they_went(client):
    found = client.predict("raw", text=np.array([b"\xff", b"\0a"], object))["text_bytes"]
    assert found.tolist() == [b"\xff", b"\0a"]
    assert client.predict("raw", text=["a\udcff"])["text_bytes"].tolist() == [b"a\xff"]


def test_outputs_can_be_chosen(client):
    assert list(client.predict(output_filter=["length"], text=["a"])) == ["length"]


@pytest.mark.parametrize(
    "signature, options, code",
    [
        ("not-there", {"text": ["a"]}, "FAILED_PRECONDITION"),
        ("serving_default", {}, "INVALID_ARGUMENT"),
        ("serving_default", {"text": ["a"], "more": [1]}, "INVALID_ARGUMENT"),
        ("serving_default", {"text": [1]}, "INVALID_ARGUMENT"),
        ("serving_default", {"text": [["a"]]}, "INVALID_ARGUMENT"),
        ("serving_default", {"text": ["a"], "output_filter": ["nothing"]}, "INVALID_ARGUMENT"),
        ("serving_default", {"text": ["a"], "output_filter": ["mark"] * 2}, "INVALID_ARGUMENT"),
        ("serving_default", {"text": ["fail"]}, "INVALID_ARGUMENT"),
    ],
)
def test_a_bad_request_gets_its_code(client, signature, options, code):
    with pytest.raises(ServingError) as caught:
        client.predict(signature, **options)
    assert caught.value.code == code and caught.value.http_status is None


def test_no_examples_and_an_unknown_signature_get_their_codes(client):
    for call in (client.classify, client.regress):
        with pytest.raises(ServingError, match="INVALID_ARGUMENT: .* at least one example"):
            call([])
        with pytest.raises(ServingError, match="INVALID_ARGUMENT"):
            call([example(b"a")], signature="not-there")


def test_a_check_asks_all_cases_of_both_interfaces(server):
    result = serve_check(server.url, "model", requests=0, grpc_target=server.grpc_target)
    assert result.ok, result.faults
    asked = {case.name for case in result.cases if not case.needs}
    assert {case.name for case in GRPC_CASES} <= asked


@pytest.mark.parametrize(
    "inputs, code, fault",
    [
        ('{"{input}": ["a"]}', "NOT_FOUND", "expected NOT_FOUND, received OK"),
        ("{}", "OK", "expected OK, received INVALID_ARGUMENT"),
    ],
)
def test_a_wrong_code_is_told(server, client, inputs, code, fault):
    case = GrpcCase("", code, inputs=inputs)
    names = names_of(client.metadata())
    assert check_grpc_case(case, server.grpc_target, "model", names).startswith(fault)


@pytest.mark.parametrize("chosen", [{"version": 7}, {"model": "other"}])
def test_what_is_not_served_is_not_found(server, chosen):
    with GrpcClient(server.grpc_target, **{"model": "model", **chosen}) as client:
        with pytest.raises(
            ServingError,
            match="NOT_FOUND: (The model .* has no version 7|This server has no model)",
        ):
            client.predict(text=["a"])
        with pytest.raises(
            ServingError,
            match="NOT_FOUND: (The model .* has no version 7|This server has no model)",
        ):
            client.status()


def test_a_label_is_asked(server):
    with GrpcClient(server.grpc_target, "model", label="stable") as client:
        assert client.predict(text=["a"])["length"].tolist() == [1]


def test_batching_refuses_inputs_that_do_not_go_together(base):
    batching = BatchingParameters(4, 0)
    with model_server({"model": base}, batching=batching) as server:
        with GrpcClient(server.grpc_target, "model") as client:
            with pytest.raises(ServingError, match="INVALID_ARGUMENT: .* equal 0th-dimension"):
                client.predict("pair", first=["a"], second=["b", "c"])
            with pytest.raises(ServingError, match="FAILED_PRECONDITION: .*0th dimension"):
                client.predict("scalar", text=["a"])


def test_too_long_an_answer_is_refused_once(server):
    with GrpcClient(server.grpc_target, "model", max_message_bytes=100_000) as client:
        with pytest.raises(ServingError, match="larger than max.*Raise `max_message_bytes`"):
            client.predict(text=["a" * 90_000, "a" * 90_000])
    with GrpcClient(server.grpc_target, "model") as client:  # beyond the 4 MiB of gRPC
        assert client.predict(text=["a" * 5_000_000])["length"].tolist() == [5_000_000]


def test_a_server_that_is_not_there_is_told():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with GrpcClient(f"127.0.0.1:{port}", "model", retries=1, timeout=5) as client:
        with pytest.raises(ServingError, match="UNAVAILABLE.*check the address"):
            client.status()


@pytest.mark.parametrize("target", ["", "http://a:1", "a", "a:b"])
def test_an_address_that_is_none_is_refused(target):
    with pytest.raises(InputError, match="address of a gRPC server"):
        GrpcClient(target, "model")
