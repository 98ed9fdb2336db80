"""Golden cases: requests over REST and calls over gRPC, and the form of the answers to them.

The cases in `golden_cases.yaml` and `grpc_cases.yaml` follow the rules of `tensorflow_model_server`
2.15; some status codes differ between gRPC and REST. None of the cases harms a server: JSON that is
nested so deeply that it ends the process is not among them.
"""

import json
from collections.abc import Iterable
from importlib.resources import files
from typing import NamedTuple

import yaml

from albert_keras.serving.client.client_errors import ServingError
from albert_keras.serving.client.rest_client import Signature

#: Features of a `tf.Example` that our exports read.
FEATURES = ("text", "pair")
#: Servers truncate messages to this number of characters.
_LONGEST_MESSAGE = 1024


class GoldenCase(NamedTuple):
    """A request over REST and the expected answer.

    In `path` and `body`, `{model}`, `{version}` and the keys of `names_of` in braces are replaced
    by names of the model that is checked.
    """

    name: str  # what the case shows
    status: int
    key: str  # of the answer: "predictions", "outputs", "error" and so on
    method: str = "POST"
    path: str = ":predict"  # relative to `/v1/models/{model}`, unless it starts with `/v1/`
    body: str | None = None
    #: Length of the value; of each output, if outputs have names.
    rows: int | None = None
    #: Part of the value, or several separated by `|`; one of them is enough.
    contains: str = ""
    #: A key of `names_of` that the model must have, "default" if that must be the default
    #: signature; "" for every model.
    needs: str = "text"


class GrpcCase(NamedTuple):
    """A call over gRPC and the expected status code.

    In `inputs` and `output_filter`, keys of `names_of` in braces are replaced.
    """

    name: str  # what the case shows
    code: str
    call: str = "predict"  # or "classify" or "regress"
    signature: str = "text"  # a key of `names_of`, or a name of no signature
    #: JSON: for predict an object of inputs; for the others a list of features, each an object of
    #: strings.
    inputs: str = '{"{input}": ["a"]}'
    output_filter: tuple[str, ...] = ()
    model: str = ""  # the model that is checked
    version: int | None = None  # the newest version
    needs: str = "text"  # as in `GoldenCase`


def read_cases(text: str, kind: type = GoldenCase) -> tuple:
    """Returns the cases of a YAML list."""
    return tuple(kind(**case) for case in yaml.safe_load(text))


_FOLDER = files("albert_keras.serving.check")
#: All cases of REST.
GOLDEN_CASES = read_cases((_FOLDER / "golden_cases.yaml").read_text(encoding="utf-8"))
#: All cases of gRPC.
GRPC_CASES = (
    *read_cases((_FOLDER / "grpc_cases.yaml").read_text(encoding="utf-8"), GrpcCase),
    GrpcCase("message of a long name", "FAILED_PRECONDITION", signature="x" * 5000, needs=""),
)


def names_of(
    signatures: dict[str, Signature],
    features: Iterable[str] = FEATURES,
    label: str | None = None,
) -> dict[str, str]:
    """Returns the names that cases need from a model.

    Args:
        signatures: As returned by `RestClient.metadata`.
        features: Features of a `tf.Example` that classify and regress need, all strings; metadata
            does not list them, and unused ones are ignored.
        label: Label of a version that is AVAILABLE; a server does not list its labels.

    Returns:
        dict. The following keys, as far as the model has them:
        text: Signature with one string input of rank 1; `input`, `output`: names of its input and
            one of its outputs.
        single: The same with only one output; `single_input`: its input.
        bytes: The same with an output named `*_bytes`; `bytes_input`: its input.
        pair: Signature with two string inputs of rank 1, `first` and `second`.
        lists: Signature with string inputs of rank 1 and rank 2; `list_rows`: two rows of values in
            columns as a JSON object, `odd_list_rows`: rows whose lists differ in length.
        tokens: Signature with integer inputs of rank 2 or more; `ids`: two rows of three, as a JSON
            object, `odd_ids`: rows that differ in length, `text_ids`: strings instead of integers.
        classify, regress: Signatures with these methods; `example`: their features as JSON.
        label: The label.
    """
    names = {"example": json.dumps(dict.fromkeys(features, "a"))}
    for name, signature in sorted(signatures.items(), key=lambda one: one[0] != "serving_default"):
        inputs, outputs = sorted(signature.inputs), sorted(signature.outputs)
        types = {dtype for dtype, _ in signature.inputs.values()}
        ranks = {len(shape or ()) for _, shape in signature.inputs.values()}
        if signature.method in ("classify", "regress"):
            found = {signature.method: name}
        elif types == {"DT_STRING"} and ranks == {1} and len(inputs) == 2:
            found = {"pair": name, "first": inputs[0], "second": inputs[1]}
        elif types == {"DT_STRING"} and ranks == {1} and len(inputs) == 1:
            found = {"text": name, "input": inputs[0], "output": (outputs or [""])[0]}
            if any(output.endswith("_bytes") for output in outputs):
                found = {"bytes": name, "bytes_input": inputs[0]}
            elif len(outputs) == 1:
                found |= {"single": name, "single_input": inputs[0]}
        elif types == {"DT_STRING"} and ranks == {1, 2}:
            found = {
                "lists": name,
                "list_rows": _two_rows(signature.inputs, "a"),
                "odd_list_rows": _two_rows(signature.inputs, "a", second_length=2),
            }
        elif types and types <= {"DT_INT32", "DT_INT64"} and min(ranks) > 1:
            found = {
                "tokens": name,
                "ids": _two_rows(signature.inputs, 1),
                "odd_ids": _two_rows(signature.inputs, 1, second_length=2),
                "text_ids": _two_rows(signature.inputs, "a"),
            }
        else:
            found = {}
        if "text" in names and "single" in found:
            found = {key: found[key] for key in ("single", "single_input")}
        if not names.keys() & found.keys():
            names |= found
    if label is not None and "text" in names:
        names["label"] = label
    return names


def fill(
    case: GoldenCase, model: str, version: int, names: dict[str, str]
) -> tuple[str, bytes | None]:
    """Returns path and body of a case for an AVAILABLE version of a model; see `names_of`."""
    path = case.path if case.path.startswith("/v1/") else "/v1/models/{model}" + case.path
    values = {"model": model, "version": str(version), **names}
    path = _replace_names(path, values)
    if case.body is None:
        return path, None
    # A lone surrogate stands for a byte that is not UTF-8.
    return path, _replace_names(case.body, values).encode(errors="surrogateescape")


def _replace_names(text, values):
    """Replaces each key of a dict in braces by its value."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def applies(case: GoldenCase | GrpcCase, names: dict[str, str]) -> bool:
    """Returns whether the model has what a case needs."""
    if case.needs == "default":
        return names.get("text") == "serving_default"
    return not case.needs or case.needs in names


def judge(case: GoldenCase, status: int, body: bytes) -> str:
    """Returns what is wrong with an answer, "" if nothing is."""
    shown = body[:200].decode(errors="replace")
    if status != case.status:
        return f"expected status {case.status}, received {status}: {shown}"
    try:
        answer = json.loads(body.decode(errors="replace"))
    except ValueError:
        return f"expected JSON, received: {shown}"
    if not isinstance(answer, dict) or case.key not in answer:
        return f"expected the key `{case.key}`, received: {shown}"
    value = answer[case.key]
    if case.key == "error" and not (isinstance(value, str) and value):
        return f"expected a message under `error`, received: {shown}"
    if case.contains and not any(part in str(value).lower() for part in case.contains.split("|")):
        return f"expected `{case.contains}` in the answer, received: {shown}"
    if case.rows is not None:
        parts = value.values() if isinstance(value, dict) else [value]
        lengths = {len(part) if isinstance(part, list) else None for part in parts}
        if lengths != {case.rows}:
            return f"expected {case.rows} rows, received {lengths}: {shown}"
    return ""


def check_grpc_case(
    case: GrpcCase, target: str, model: str, names: dict[str, str], timeout: float = 30.0
) -> str:
    """Makes the call of a case, and returns what is wrong with the answer, "" if nothing is.

    Args:
        case: One that applies to the model.
        target: Address of the server, such as `127.0.0.1:8500`.
        names: See `names_of`.
        timeout: Seconds.
    """
    from albert_keras.serving.client.grpc_client import GrpcClient  # loads TensorFlow

    inputs = json.loads(_replace_names(case.inputs, names))
    outputs = [_replace_names(output, names) for output in case.output_filter]
    signature = names.get(case.signature, case.signature)
    served = (target, case.model or model, case.version)
    with GrpcClient(*served, timeout=timeout, retries=0) as client:
        try:
            if case.call == "predict":
                client.predict(signature, outputs, **inputs)
            else:
                getattr(client, case.call)([_example(one) for one in inputs], signature)
        except ServingError as error:
            length = len(error.message)
            if error.code != case.code:
                return f"expected {case.code}, received {error.code}: {error}"
            if length > _LONGEST_MESSAGE:
                return f"expected at most {_LONGEST_MESSAGE} characters, received {length}"
            return ""
    return "" if case.code == "OK" else f"expected {case.code}, received OK"


def _example(features):
    import tensorflow as tf

    example = tf.train.Example()
    for name, value in features.items():
        example.features.feature[name].bytes_list.value.append(value.encode())
    return example


def _two_rows(inputs, value, second_length=3):
    """Returns two rows for each input as a JSON object; innermost lists of rank 2 or more.

    Dimensions between the first and the last have their size, or one element if they are free.
    """

    def nested(sizes, length):
        if len(sizes) <= 1:
            return [value] * length if sizes else value
        return [nested(sizes[1:], length)] * max(sizes[0] or 1, 1)

    return json.dumps(
        {
            name: [nested(shape[1:], 3), nested(shape[1:], second_length)]
            for name, (_, shape) in inputs.items()
        }
    )
