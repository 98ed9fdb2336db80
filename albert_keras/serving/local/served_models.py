"""Loaded exports that answer the requests of a local server, in the JSON of the model server."""

import base64
import functools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.json_format import MessageToDict

from albert_keras.report import shortened_value
from albert_keras.serving.predictor import Predictor
from albert_keras.serving.rest_client import signatures_from_json
from albert_keras.serving.sample_texts import sample_texts
from albert_keras.serving.saved_model.server_ops import read_saved_model
from albert_keras.serving.saved_model.signatures import read_signatures, sample_inputs, to_array
from albert_keras.tasks.task import check_text
from data_pipeline.errors import InputError
from data_pipeline.limits import parse_json

#: Maximum number of texts of a request; memory grows with them.
_MAX_TEXTS = 64
#: Maximum number of texts, numbers, names and lists of a request; reading them takes milliseconds.
_MAX_VALUES = 1 << 15
#: Inputs that must not be blank, by signature. The other signatures describe a text, blank or not.
_REQUIRED = {
    "serving_default": ("text", "context", "question"),
    "fill_mask": ("text",),
    "sentence_order": ("first", "second"),
    "text_pair": ("first",),
    "tags": ("text",),
    "question_answering": ("question", "context"),
    "multiple_choice": ("context", "question"),
}


class ServedModel:
    """The version of a model in a folder, loaded; its signatures for predict requests.

    Raises:
        InputError: If the export is damaged or uses operations that are not allowed.
    """

    def __init__(self, name: str, folder: Path):
        self.name, self.version = name, int(folder.name)
        self._predictor = Predictor(folder)
        self._signatures = {
            one.name: one for one in read_signatures(folder) if one.method == "predict"
        }
        self._samples = sample_texts(folder)
        (graph,) = read_saved_model(folder).meta_graphs
        #: The signatures in the JSON of `SignatureDef` messages.
        self.definitions = {
            name: MessageToDict(graph.signature_def[name], preserving_proto_field_name=True)
            for name in self._signatures
        }
        for signature in self._signatures.values():  # the first call takes longer than later ones
            self._predictor.call(signature.name, sample_inputs(signature, [b""], length=1))

    def describe(self) -> dict[str, Any]:
        """Returns the description of the model that the page needs, plain JSON."""
        task, signatures = self._predictor.task, signatures_from_json(self.definitions)
        return {
            "name": self.name,
            "version": self.version,
            "precision": self._predictor.precision,
            "signatures": {name: one._asdict() for name, one in signatures.items()},
            "task": task
            and {
                "name": task.config.name,
                "labels": list(task.labels),
                "takes_pair": task.takes_pair,
                "finds_spans": task.finds_spans,
            },
            "samples": self._samples._asdict(),
        }

    def answer(self, body: bytes) -> bytes:
        """Answers a predict request, JSON; InputError if it is not valid."""
        document, name = _read_request(body)
        signature = self._signatures.get(name)
        if signature is None:
            raise InputError(f"The model has no signature `{name}`. Metadata lists all of them.")
        tensors = _read_predict(document, signature.inputs)
        for alias, array in tensors.items():
            # The last dimension of numbers is the tokens of a text.
            rows = array.size if array.dtype == object else array[..., :1].size
            if rows > _MAX_TEXTS:
                raise InputError(
                    f"The input `{alias}` must have at most {_MAX_TEXTS} texts. Received: {rows}."
                )
            if array.dtype == object and alias in _REQUIRED.get(name, ()):
                for text in array.ravel():
                    self._check_text(name, alias, text.decode(errors="replace"))
        return _write_predict(self._predictor.call(name, tensors), "instances" in document)

    def _check_text(self, name, alias, text):
        """Refuses a blank text, and one text instead of two, as `Task.example` does.

        The graph answers them as if they said something.
        """
        check_text(alias, text)
        task = self._predictor.task
        takes_two = task is not None and (task.takes_pair or task.finds_spans)
        if name == "serving_default" and alias == "text" and takes_two and "\t" not in text:
            raise InputError(
                "The model takes pairs: `text` must be two texts separated by a tab; or call the "
                f"signature with an input for each of them. Received: {text[:60]!r}."
            )


def _read_request(body: bytes) -> tuple[dict, str]:
    """Parses the body of a request; bytes that are not UTF-8 reach the model as they are.

    Returns the JSON object, and the name of the signature; InputError if it is not an object.
    """
    _check_size(body)
    try:
        text = body.decode("utf-8", errors="surrogateescape")
        document = parse_json(text, parse_int=_to_number)
    except ValueError as error:
        raise InputError(f"The body of the request is not valid JSON: {error}.") from error
    name = document.get("signature_name", "") if isinstance(document, dict) else None
    if not isinstance(name, str):
        raise InputError(
            "The body must be a JSON object, and `signature_name` in it a string. Received: "
            f"{shortened_value(document)}."
        )
    return document, name or "serving_default"


def _check_size(body):
    """Refuses a body with so many values that reading them would take long; a text is one."""
    plain = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    count = plain.count(b'"') // 2
    if count <= _MAX_VALUES:
        outside = b"".join(plain.split(b'"')[::2])
        count += sum(map(outside.count, (b"[", b"{", b",")))
    if count > _MAX_VALUES:
        raise InputError(f"A request must have at most {_MAX_VALUES:,} values. Received: more.")


def _to_number(digits):
    """Returns an integer of JSON; beyond 64 bits, which no input has, a float, perhaps infinite."""
    return int(digits) if len(digits) <= 20 else float(digits[:400])


def _read_predict(document: dict, inputs: Mapping[str, tf.TensorSpec]) -> dict[str, np.ndarray]:
    """Reads the arrays of a predict request, either in rows (`instances`) or columns (`inputs`)."""
    in_rows = "instances" in document
    given = document.get("instances" if in_rows else "inputs")
    if in_rows == ("inputs" in document) or (in_rows and not (isinstance(given, list) and given)):
        raise InputError(
            "A predict request must have either `instances` (a list of at least one row) or "
            "`inputs` (the values of each input)."
        )
    if in_rows and any(map(_has_names, given)):
        wrong = [row for row in given if not _has_names(row) or set(row) != set(inputs)]
        if wrong:
            raise InputError(
                "Each row of `instances` must be an object with the inputs "
                f"{', '.join(sorted(inputs))}. Received: {shortened_value(wrong[0])}."
            )
        given = {name: [row[name] for row in given] for name in inputs}
    elif not _has_names(given):
        given = {next(iter(inputs)): given}  # the name of the only input may be left out
    if not set(inputs) <= set(given):
        raise InputError(f"A request must name the inputs {', '.join(sorted(inputs))}.")
    return {name: to_array(_with_bytes(given[name]), spec) for name, spec in inputs.items()}


def _write_predict(outputs: dict[str, np.ndarray], in_rows: bool) -> bytes:
    """Returns an answer as JSON: `predictions` (a list of rows) or `outputs` (columns).

    NaN and Infinity are without quotes, and bytes that are not UTF-8 as they are.
    """
    columns = {name: _to_lists(array) for name, array in outputs.items()}
    lengths = {array.shape[:1] for array in outputs.values()}
    if not in_rows:
        answer = {"outputs": _without_single_name(columns)}
    elif len(lengths) > 1 or () in lengths:
        raise InputError(
            "The outputs of this signature do not all have one value per row. Send `inputs` "
            "instead of `instances`."
        )
    else:
        rows = zip(*columns.values(), strict=True)
        named = (dict(zip(columns, row, strict=True)) for row in rows)
        answer = {"predictions": list(map(_without_single_name, named))}
    return json.dumps(answer, ensure_ascii=False).encode("utf-8", "surrogateescape")


def _with_bytes(value):
    """Returns values of JSON as an array of objects, in which strings in base64 are bytes."""
    array = np.array(value, object)
    values = array.reshape(-1)  # a view
    for number, one in enumerate(values):
        if isinstance(one, dict) and _is_base64(one):
            try:
                values[number] = base64.b64decode(one["b64"], validate=True)
            except ValueError as error:
                raise InputError("`b64` must be base64 in the standard alphabet.") from error
    return array


def _to_lists(array: np.ndarray) -> Any:
    """Returns an array as nested lists of JSON values."""
    if array.dtype == object:
        decode = functools.partial(bytes.decode, errors="surrogateescape")
        return np.vectorize(decode, otypes=[object])(array).tolist()
    if array.dtype == np.float32:
        array = array.astype(str).astype(float)  # 0.1 instead of 0.10000000149011612
    return array.tolist()


def _is_base64(value):
    return isinstance(value, dict) and set(value) == {"b64"} and isinstance(value["b64"], str)


def _has_names(value):
    """Returns whether a value is an object with names, and not base64."""
    return isinstance(value, dict) and not _is_base64(value)


def _without_single_name(named):
    return next(iter(named.values())) if len(named) == 1 else named
