"""Golden cases of gRPC: calls and the status code of each answer.

Like the cases of REST, they follow the rules of `tensorflow_model_server` 2.15; some codes differ
from those of REST.
"""

import json
from importlib.resources import files
from typing import NamedTuple

import yaml

from albert_keras.serving.check.golden_cases import replace_names
from albert_keras.serving.client.client_errors import ServingError


class GrpcCase(NamedTuple):
    """A call and the expected status code.

    Attributes:
        name: str. What the case shows.
        code: str. Expected gRPC status code.
        call: str. "predict", "classify" or "regress".
        signature: str. A key of `golden_cases.names_of`, or a name of no signature.
        inputs: str. For predict a JSON object of inputs; for the others a JSON list of features,
            each an object of strings. Keys of `names_of` in braces are replaced.
        output_filter: tuple of str. Keys of `names_of` in braces are replaced.
        model: str. "" is the model that is checked.
        version: int or None. None is the newest version.
        needs: str. What the model must have, as in `GoldenCase`.
    """

    name: str
    code: str
    call: str = "predict"
    signature: str = "text"
    inputs: str = '{"{input}": ["a"]}'
    output_filter: tuple[str, ...] = ()
    model: str = ""
    version: int | None = None
    needs: str = "text"


_FILE = files("albert_keras.serving.check").joinpath("grpc_cases.yaml")
#: All of them.
GRPC_CASES = (
    *(GrpcCase(**case) for case in yaml.safe_load(_FILE.read_text(encoding="utf-8"))),
    GrpcCase("message of a long name", "FAILED_PRECONDITION", signature="x" * 5000, needs=""),
)
#: Servers truncate messages to this number of characters.
_LONGEST_MESSAGE = 1024


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
