"""Golden cases of gRPC: calls and the status code of each answer.

Like the cases of REST, they follow the rules of `tensorflow_model_server` 2.15; some codes differ
from those of REST.
"""

import json
from typing import NamedTuple

from albert_keras.serving.check.golden_cases import replace_names
from albert_keras.serving.client.client_errors import ServingError


class GrpcCase(NamedTuple):
    """A call and the expected answer.

    Attributes:
        name: str. What the case shows.
        call: str. "predict", "classify" or "regress".
        signature: str. A key of `golden_cases.names_of`, or a name of no signature.
        inputs: str. For predict a JSON object of inputs; for the others a JSON list of features,
            each an object of strings. Keys of `names_of` in braces are replaced.
        code: str. Expected gRPC status code.
        needs: str. What the model must have, as in `GoldenCase`.
        output_filter: tuple of str. Keys of `names_of` in braces are replaced.
        model: str. "" is the model that is checked.
        version: int or None. None is the newest version.
    """

    name: str
    call: str
    signature: str
    inputs: str
    code: str
    needs: str = ""
    output_filter: tuple[str, ...] = ()
    model: str = ""
    version: int | None = None


#: Servers truncate messages to this number of characters.
_LONGEST_MESSAGE = 1024

_ONE = '{"{input}": ["a"]}'
_BAD, _STATE, _NONE = "INVALID_ARGUMENT", "FAILED_PRECONDITION", "NOT_FOUND"

GRPC_CASES = (
    GrpcCase("predict over gRPC", "predict", "text", _ONE, "OK", "text"),
    GrpcCase("classify over gRPC", "classify", "classify", "[{example}]", "OK", "classify"),
    GrpcCase("regress over gRPC", "regress", "regress", "[{example}]", "OK", "regress"),
    GrpcCase("unknown model", "predict", "text", _ONE, _NONE, "text", (), "not-there-at-all"),
    GrpcCase("unknown version", "predict", "text", _ONE, _NONE, "text", (), "", 9 * 10**18),
    GrpcCase("unknown signature", "predict", "not-there", '{"text": ["a"]}', _STATE),
    GrpcCase("unknown signature of classify", "classify", "not-there", '[{"text": "a"}]', _BAD),
    GrpcCase("unknown signature of regress", "regress", "not-there", '[{"text": "a"}]', _BAD),
    GrpcCase("missing input", "predict", "text", "{}", _BAD, "text"),
    GrpcCase("extra input", "predict", "text", '{"{input}": ["a"], "more": [1]}', _BAD, "text"),
    GrpcCase("unknown output", "predict", "text", _ONE, _BAD, "text", ("not-there",)),
    GrpcCase("output requested twice", "predict", "text", _ONE, _BAD, "text", ("{output}",) * 2),
    GrpcCase("message of a long name", "predict", "x" * 5000, '{"text": ["a"]}', _STATE),
    GrpcCase("wrong type", "predict", "text", '{"{input}": [1]}', _BAD, "text"),
    GrpcCase("wrong rank", "predict", "text", '{"{input}": [["a"]]}', _BAD, "text"),
    GrpcCase("rank 0", "predict", "text", '{"{input}": "a"}', _BAD, "text"),
    GrpcCase("inputs with different numbers of rows", "predict", "pair",
             '{"{first}": ["a", "b", "c"], "{second}": ["a", "b"]}', _BAD, "pair"),
    GrpcCase("no examples to classify", "classify", "classify", "[]", _BAD, "classify"),
    GrpcCase("no examples for regress", "regress", "regress", "[]", _BAD, "regress"),
)  # fmt: skip


def check_case(case, target, model, names, timeout=30.0):
    """Makes the call of a case.

    Args:
        case: GrpcCase. One that applies to the model.
        target: str. Address of the server, such as `127.0.0.1:8500`.
        model: str.
        names: dict, see `golden_cases.names_of`.
        timeout: float. Seconds.

    Returns:
        str. What is wrong with the answer, "" if nothing is.
    """
    from albert_keras.serving.client.grpc_client import GrpcClient

    inputs = json.loads(replace_names(case.inputs, names))
    outputs = [replace_names(output, names) for output in case.output_filter]
    signature = names.get(case.signature, case.signature)
    with GrpcClient(
        target, case.model or model, case.version, timeout=timeout, retries=0
    ) as client:
        try:
            if case.call == "predict":
                client.predict(signature, outputs, **inputs)
            else:
                getattr(client, case.call)([_example(one) for one in inputs], signature)
        except ServingError as error:
            if error.code != case.code:
                return f"expected {case.code}, received {error.code}: {error}"
            if len(error.message) > _LONGEST_MESSAGE:
                return (
                    f"expected at most {_LONGEST_MESSAGE} characters, received {len(error.message)}"
                )
            return ""
    return "" if case.code == "OK" else f"expected {case.code}, received OK"


def _example(features):
    import tensorflow as tf

    example = tf.train.Example()
    for name, value in features.items():
        example.features.feature[name].bytes_list.value.append(value.encode())
    return example
