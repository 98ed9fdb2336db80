"""What a server that speaks the protocol must answer: requests and answers, as data.

The cases stand in `golden_cases.yaml`; they follow the rules of `tensorflow_model_server` 2.15 for
REST, its forms and codes. None of them harms a server: JSON nested so deeply that it ends the
process is not among them.
"""

import json
from importlib.resources import files
from typing import NamedTuple

import yaml

#: Those of a `tf.Example` that our exports read.
FEATURES = ("text", "pair")


class GoldenCase(NamedTuple):
    """A request and what is to come back.

    In `path` and `body`, `{model}`, `{version}` and the names of `Names` in braces stand for what
    the model at hand has.

    Attributes:
        name: str. What it shows.
        method: str. "GET" or "POST".
        path: str. Behind `/v1/models/{model}`, unless it begins with `/`.
        body: str or None.
        status: int. Of HTTP.
        key: str. The key of the answer: "predictions", "outputs", "results", "error" and so on.
        rows: int or None. Length of what is under the key; of each output, if it has names.
        said: str. What the error message contains, one of several divided by `|`.
        needs: str. What the model must have, "" for every one; see `Names`.
    """

    name: str
    method: str
    path: str
    body: str | None
    status: int
    key: str
    rows: int | None = None
    said: str = ""
    needs: str = ""


class Names(NamedTuple):
    """What of a model the cases can ask; "" where it has none.

    Attributes:
        text: str. Signature with one input of strings, rank 1.
        input, output: str. Its input, and one of its outputs.
        pair: str. Signature with two inputs of strings, rank 1.
        first, second: str. Its inputs.
        lists: str. Signature with inputs of strings, rank 1 and rank 2.
        list_rows: str. Its inputs, with values of two rows in columns, as a JSON object.
        odd_list_rows: str. The same where the lists of the two rows have different lengths.
        tokens: str. Signature with one input or more of integers, rank 2 or more.
        ids: str. Its inputs, with values of two rows of three, as a JSON object.
        odd_ids, text_ids: str. The same where the two rows have different lengths, and where
            there are strings instead of integers.
        classify, regress: str. Signatures of these methods.
        example: str. What they want, a JSON object of features.
        label: str. A label of a version that is AVAILABLE.
        single: str. Signature with one input of strings, `single_input`, and one output.
        bytes: str. Signature with one input of strings, `bytes_input`, and an output `*_bytes`.
        uneven, scalar, not_finite: str. Signatures of test models only: one whose outputs differ
            in their first dimension, one without such dimension, one that gives NaN and Infinity.
    """

    text: str = ""
    input: str = ""
    output: str = ""
    pair: str = ""
    first: str = ""
    second: str = ""
    lists: str = ""
    list_rows: str = ""
    odd_list_rows: str = ""
    tokens: str = ""
    ids: str = ""
    odd_ids: str = ""
    text_ids: str = ""
    classify: str = ""
    regress: str = ""
    example: str = '{"text": "a", "pair": "a"}'
    label: str = ""
    single: str = ""
    single_input: str = ""
    bytes: str = ""
    bytes_input: str = ""
    uneven: str = ""
    scalar: str = ""
    not_finite: str = ""


def _read():
    file = files("albert_keras.serving.check").joinpath("golden_cases.yaml")
    usual = {"method": "POST", "path": ":predict", "body": None, "needs": "text"}
    return tuple(
        GoldenCase(**{**usual, **case}) for case in yaml.safe_load(file.read_text(encoding="utf-8"))
    )


#: All of them.
GOLDEN_CASES = _read()


def names_of(signatures, features=FEATURES, label=None):
    """Returns what the cases can ask of a model.

    Args:
        signatures: dict of name -> Signature, as `RestClient.metadata` gives it.
        features: iterable of str. Those of a `tf.Example` that classify and regress want, strings;
            the metadata of a server do not tell them. What a model does not read does no harm.
        label: str or None. Of a version that is AVAILABLE; a server does not list its labels.

    Returns:
        Names.
    """
    found = {"example": json.dumps(dict.fromkeys(features, "a"))}
    ordered = sorted(signatures.items(), key=lambda item: item[0] != "serving_default")
    for name, signature in ordered:
        types = {dtype for dtype, _ in signature.inputs.values()}
        ranks = {len(shape or ()) for _, shape in signature.inputs.values()}
        if name in ("uneven", "scalar", "not_finite"):
            found[name] = name
        elif signature.method in ("classify", "regress"):
            found.setdefault(signature.method, name)
        elif types == {"DT_STRING"} and ranks == {1}:
            inputs = sorted(signature.inputs)
            if len(inputs) == 2 and "pair" not in found:
                found.update(pair=name, first=inputs[0], second=inputs[1])
            elif len(inputs) == 1:
                _add_text(found, name, inputs[0], signature.outputs)
        elif types == {"DT_STRING"} and ranks == {1, 2} and "lists" not in found:
            found.update(lists=name, list_rows=_values(signature.inputs, "a"))
            found["odd_list_rows"] = _values(signature.inputs, "a", is_odd=True)
        elif types and types <= {"DT_INT32", "DT_INT64"} and min(ranks) > 1:
            if "tokens" not in found:
                found.update(tokens=name, ids=_values(signature.inputs, 1))
                found["odd_ids"] = _values(signature.inputs, 1, is_odd=True)
                found["text_ids"] = _values(signature.inputs, "a")
    if label is not None and "text" in found:
        found["label"] = label
    return Names(**found)


def fill(case, model, version, names):
    """Returns path (str) and body (bytes or None) of a case for a model.

    Args:
        case: GoldenCase.
        model: str.
        version: int. One that is AVAILABLE.
        names: Names.
    """
    values = {"model": model, "version": str(version), **names._asdict()}
    path = case.path if case.path.startswith("/v1/") else "/v1/models/{model}" + case.path
    filled = [path, case.body]
    for name, value in values.items():
        filled = [part and part.replace("{" + name + "}", value) for part in filled]
    # Half a character stands for a byte that is not UTF-8.
    return filled[0], None if case.body is None else filled[1].encode(errors="surrogateescape")


def applies(case, names):
    """Tells whether the model has what a case needs."""
    if case.needs == "default":
        return names.text == "serving_default"
    return not case.needs or bool(getattr(names, case.needs))


def judge(case, status, body):
    """Returns what is wrong about an answer, "" if nothing is.

    Args:
        case: GoldenCase.
        status: int. Of HTTP.
        body: bytes.
    """
    shown = body[:200].decode(errors="replace")
    if status != case.status:
        return f"status {status} instead of {case.status}: {shown}"
    try:
        answer = json.loads(body.decode(errors="replace"))
    except ValueError:
        return f"no JSON: {shown}"
    if not isinstance(answer, dict) or case.key not in answer:
        return f"no key {case.key}: {shown}"
    value = answer[case.key]
    if case.said and not any(part in str(value).lower() for part in case.said.split("|")):
        return f"the message does not say `{case.said}`: {shown}"
    if case.rows is not None:
        parts = value.values() if isinstance(value, dict) else [value]
        lengths = {len(part) if isinstance(part, list) else None for part in parts}
        if lengths != {case.rows}:
            return f"lengths {lengths} instead of {case.rows}: {shown}"
    return ""


def _add_text(found, name, input_name, outputs):
    ends = [output for output in outputs if output.endswith("_bytes")]
    if ends:
        found.setdefault("bytes", name)
        found.setdefault("bytes_input", input_name)
        return
    if "text" not in found:
        found.update(text=name, input=input_name, output=next(iter(outputs), ""))
    if len(outputs) == 1 and "single" not in found:
        found.update(single=name, single_input=input_name)


def _values(inputs, value, is_odd=False):
    """Returns two rows for each input as a JSON object; the second one shorter if `is_odd`."""
    columns = {}
    for name, (_, shape) in inputs.items():
        columns[name] = [
            _nested(value, len(shape) - 1, 3),
            _nested(value, len(shape) - 1, 3 - is_odd),
        ]
    return json.dumps(columns)


def _nested(value, depth, length):
    """Returns a value in so many lists, `length` of it in the innermost one."""
    if depth:
        value = [value] * length
    for _ in range(depth - 1):
        value = [value]
    return value
