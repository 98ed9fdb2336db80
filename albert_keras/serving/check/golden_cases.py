"""Golden cases of REST: requests, and the status and form of the answers to them.

The cases in `golden_cases.yaml` follow the rules of `tensorflow_model_server` 2.15. None of them
harms a server: JSON that is nested so deeply that it ends the process is not among them.
"""

import json
from importlib.resources import files
from typing import NamedTuple

import yaml

#: Features of a `tf.Example` that our exports read.
FEATURES = ("text", "pair")


class GoldenCase(NamedTuple):
    """A request and the expected answer.

    In `path` and `body`, `{model}`, `{version}` and the keys of `names_of` in braces are replaced
    by names of the model that is checked.

    Attributes:
        name: str. What the case shows.
        status: int. Expected HTTP status.
        key: str. Expected key of the answer: "predictions", "outputs", "error" and so on.
        method: str. "GET" or "POST".
        path: str. Relative to `/v1/models/{model}`, unless it starts with `/v1/`.
        body: str or None.
        rows: int or None. Expected length of the value; of each output, if outputs have names.
        contains: str. Expected part of the value, or several separated by `|`, one of which is
            enough.
        needs: str. A key of `names_of` that the model must have, "default" if that must be the
            default signature; "" for every model.
    """

    name: str
    status: int
    key: str
    method: str = "POST"
    path: str = ":predict"
    body: str | None = None
    rows: int | None = None
    contains: str = ""
    needs: str = "text"


def read_cases(text):
    """Returns the cases of a YAML list, a tuple of GoldenCase."""
    return tuple(GoldenCase(**case) for case in yaml.safe_load(text))


#: All of them.
GOLDEN_CASES = read_cases(
    files("albert_keras.serving.check").joinpath("golden_cases.yaml").read_text(encoding="utf-8")
)


def names_of(signatures, features=FEATURES, label=None):
    """Returns the names that cases need from a model.

    Args:
        signatures: dict of name -> Signature, as returned by `RestClient.metadata`.
        features: iterable of str. Features of a `tf.Example` that classify and regress need, all
            strings; metadata does not list them, and unused ones are ignored.
        label: str or None. Label of a version that is AVAILABLE; a server does not list its labels.

    Returns:
        dict of str -> str, with those of these keys that the model has:
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


def fill(case, model, version, names):
    """Returns path (str) and body (bytes or None) of a case for a model.

    Args:
        case: GoldenCase.
        model: str.
        version: int. One that is AVAILABLE.
        names: dict, see `names_of`.
    """
    path = case.path if case.path.startswith("/v1/") else "/v1/models/{model}" + case.path
    values = {"model": model, "version": str(version), **names}
    path = replace_names(path, values)
    if case.body is None:
        return path, None
    # A lone surrogate stands for a byte that is not UTF-8.
    return path, replace_names(case.body, values).encode(errors="surrogateescape")


def replace_names(text, values):
    """Replaces each key of a dict in braces by its value."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def applies(case, names):
    """Returns whether the model has what a case needs."""
    if case.needs == "default":
        return names.get("text") == "serving_default"
    return not case.needs or case.needs in names


def judge(case, status, body):
    """Returns what is wrong with an answer, "" if nothing is.

    Args:
        case: GoldenCase.
        status: int. HTTP status.
        body: bytes.
    """
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


def _two_rows(inputs, value, second_length=3):
    """Returns two rows for each input as a JSON object; innermost lists of rank 2 or more."""

    def nested(depth, length):
        return [value] * length if depth == 1 else [nested(depth - 1, length)] if depth else value

    return json.dumps(
        {
            name: [nested(len(shape) - 1, 3), nested(len(shape) - 1, second_length)]
            for name, (_, shape) in inputs.items()
        }
    )
