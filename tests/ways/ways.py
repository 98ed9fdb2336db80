"""The ways from inputs to answers, each a function of a World and inputs.

Each returns for each input what it answers: texts, tags and places as they are, and "numbers", a
list of float. A way that refuses an input raises an InputError.
"""

import base64
import functools
import http.client
import io
import itertools
import json
import sys
import threading
import time
import urllib.parse
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401 (registers the operations of the tokenizer)

import albert_keras
from albert_keras.cli import main
from albert_keras.serving.local.local_server import LocalServer
from data_pipeline.errors import InputError
from tests.ways.files import write_examples
from tests.ways.kinds import Kind, config_of, shape_of

Inputs = list[dict[str, Any]]
#: Rows of a request to a server.
_ROWS = 32


class World:
    """A fine-tuned run, and what is made of it when it is first asked.

    Args:
        kind: Kind.
        folder: Where the run and its export are written.
        tokenizer: Tokenizer.
        dev: Inputs that the training scores as development examples, see `development_scores`.
    """

    def __init__(self, kind: Kind, folder: Path, tokenizer: Any, dev: Inputs):
        self.kind, self.folder, self.dev = kind, folder, dev
        labels = list(itertools.islice(itertools.cycle(kind.labels), len(dev)))
        if "words" in dev[0]:
            labels = [["O"] * len(one["words"]) for one in dev]
        elif kind.task["name"] == "squad2":
            labels = [next(iter(one["context"].split()), None) for one in dev]
        rows = zip(*kind.columns.values(), strict=True)
        training = [dict(zip(kind.columns, row, strict=True)) for row in rows]
        albert_keras.finetune(
            "random",
            self.run,
            config_of(kind),
            albert_config=shape_of(tokenizer.vocab_size),
            tokenizer=tokenizer,
            train=write_examples(folder / "train", kind, training, kind.labels),
            dev=write_examples(folder / "dev", kind, dev, labels),
        )

    @property
    def run(self) -> Path:
        return self.folder / "run"

    @functools.cached_property
    def model(self) -> Any:
        return albert_keras.open_finetuned(self.run)

    @functools.cached_property
    def export(self) -> Path:
        albert_keras.export(self.run, self.folder / "export")
        return self.folder / "export"

    @functools.cached_property
    def saved_model(self) -> Any:
        return tf.saved_model.load(str(self.export / "1"))

    @functools.cached_property
    def predictor(self) -> Any:
        return albert_keras.Predictor(self.export)

    @functools.cached_property
    def server(self) -> LocalServer:
        server = LocalServer([self.export], "127.0.0.1", 0)
        server.__enter__()
        self._thread = threading.Thread(target=server.run, daemon=True)
        self._thread.start()
        while not server.started:
            time.sleep(0.01)
        return server

    def close(self) -> None:
        if "server" in self.__dict__:
            self.server.stop()
            self._thread.join(60)
            self.server.__exit__(None, None, None)


def columns_of(inputs: Inputs) -> dict[str, list]:
    """Returns the columns of inputs, which all have the same names."""
    return {name: [one[name] for one in inputs] for name in inputs[0]}


# === What a way answers, in one form


def _named(answer: dict[str, Any]) -> dict[str, Any]:
    """Returns a named answer, as `_asdict` or JSON has it."""
    names = ("label", "labels", "choice", "words", "tags", "text", "start", "end")
    found = {name: answer[name] for name in names if name in answer}
    found = {name: list(one) if isinstance(one, tuple) else one for name, one in found.items()}
    if "nbest" in answer:
        numbers: Any = [answer["null_score"]]
        found["probability of the best"] = [answer["nbest"][0]["probability"]]
    else:
        numbers = answer.get("probabilities", answer.get("scores", answer.get("score")))
    numbers = list(numbers.values()) if isinstance(numbers, dict) else numbers
    return found | {"numbers": [*map(float, np.atleast_1d(numbers))]}


def _of_signature(world: World, row: dict[str, Any]) -> dict[str, Any]:
    """Returns a row of the outputs of a signature, whose texts are str."""
    if "tags" in row:
        count = sum(tag != "" for tag in row["tags"])
        found = {name: list(row[name])[:count] for name in ("words", "tags")}
        return found | {"numbers": list(row["probability"])[:count]}
    if "answer" in row:
        start, end = (None if row[name] < 0 else row[name] for name in ("start", "end"))
        found = {"text": row["answer"], "start": start, "end": end}
        return found | {"numbers": [row["null_score"]]}
    numbers = row.get("probabilities", row.get("scores", row.get("score")))
    numbers = [*map(float, np.atleast_1d(numbers))]
    if "thresholds" in row:
        pairs = zip(row["labels"], numbers, row["thresholds"], strict=True)
        labels = [name for name, number, threshold in pairs if number >= threshold]
        return {"labels": labels, "numbers": numbers}
    return {name: row[name] for name in ("label", "choice") if name in row} | {"numbers": numbers}


def _plain(value):
    """Returns an array of an output as Python values, with texts as str."""
    if isinstance(value, bytes):
        return value.decode()
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _rows(outputs):
    """Returns the rows of outputs by name, [B, ...]."""
    values = {name: [_plain(row) for row in rows] for name, rows in outputs.items()}
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


# === The ways


def answer(world: World, inputs: Inputs) -> list[dict]:
    """`answer` of the model."""
    return [_named(one._asdict()) for one in world.model.answer(columns_of(inputs))]


def predict(world: World, inputs: Inputs) -> list[dict]:
    """`predict` of Keras."""
    found = world.model.predict(columns_of(inputs), verbose=0)
    if isinstance(found, dict):
        return [_of_signature(world, row) for row in _rows(found)]
    labels, found = list(world.model.labels), np.asarray(found)
    if "words" in world.kind.columns:
        rows = [row[row.sum(-1) > 0] for row in found]
        return [
            {"tags": [labels[at] for at in row.argmax(-1)], "numbers": row.max(-1).tolist()}
            for row in rows
        ]
    if world.kind.task.get("label_separator"):
        thresholds = [world.model.thresholds.get(name, 0.5) for name in labels]
        return [
            {
                "labels": [
                    name for name, one, at in zip(labels, row, thresholds, strict=True) if one >= at
                ],
                "numbers": row.tolist(),
            }
            for row in found
        ]
    rows = [{"numbers": np.atleast_1d(row).tolist()} for row in found]
    if "options" in world.kind.columns:
        return [one | {"choice": int(np.argmax(one["numbers"]))} for one in rows]
    if labels:
        return [one | {"label": labels[int(np.argmax(one["numbers"]))]} for one in rows]
    return rows


def development_scores(world: World, inputs: Inputs) -> list[dict]:
    """What `finetune` answered when it scored the development examples, among them the inputs."""
    if world.kind.task["name"] == "squad2":
        texts = json.loads((world.run / "predictions.json").read_text())
        odds = json.loads((world.run / "null_odds.json").read_text())
        return [
            {"text": texts[str(at)], "numbers": [odds[str(at)]]}
            for at in map(world.dev.index, inputs)
        ]
    lines = (world.run / "predictions-dev.jsonl").read_text().splitlines()
    found = [_named(json.loads(line)) for line in lines]
    return [found[world.dev.index(one)] for one in inputs]


def task_answers(world: World, inputs: Inputs) -> list[dict]:
    """`predict_task` of the run."""
    return [_named(one._asdict()) for one in albert_keras.predict_task(world.run, inputs).answers]


def _command(place: Path, inputs: Inputs) -> list[dict]:
    lines = "\n".join(map(json.dumps, inputs)) + "\n"
    stdin, stdout, stderr = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BytesIO(lines.encode()))
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    try:
        code = main(["predict", str(place), "--json"])
        printed, error = sys.stdout.getvalue(), sys.stderr.getvalue()
    finally:
        sys.stdin, sys.stdout, sys.stderr = stdin, stdout, stderr
    if code:
        raise InputError(error.strip().splitlines()[-1])
    return [_named(json.loads(line)) for line in printed.split("\n") if line]


def command_of_run(world: World, inputs: Inputs) -> list[dict]:
    """`albert-keras predict RUN`, which is given lines."""
    return _command(world.run, inputs)


def command_of_export(world: World, inputs: Inputs) -> list[dict]:
    """`albert-keras predict EXPORT`, which is given lines."""
    return _command(world.export, inputs)


def predictor(world: World, inputs: Inputs) -> list[dict]:
    """`Predictor.answer` of the export."""
    return [_named(one._asdict()) for one in world.predictor.answer(inputs)]


def saved_model(world: World, inputs: Inputs) -> list[dict]:
    """The export in plain TensorFlow."""
    inputs = [_for_signature(world, one) for one in inputs]
    texts = {name: tf.constant(_mapped(_bytes, rows)) for name, rows in columns_of(inputs).items()}
    found = world.saved_model.signatures[world.kind.signature](**texts)
    return [
        _of_signature(world, row)
        for row in _rows({name: value.numpy() for name, value in found.items()})
    ]


def _for_signature(world, input_):
    """Returns an input with the names of the signature, in which words are one text."""
    names = world.kind.inputs_of_signature
    return {
        names.get(name, name): "\x1f" + " ".join(value) if name == "words" else value
        for name, value in input_.items()
    }


def _mapped(function, value):
    if isinstance(value, list):
        return [_mapped(function, one) for one in value]
    return function(value)


def _bytes(text):
    return text if isinstance(text, bytes) else text.encode()


def _json(text):
    return {"b64": base64.b64encode(text).decode()} if isinstance(text, bytes) else text


def server(world: World, inputs: Inputs) -> list[dict]:
    """The local server, over HTTP."""
    found: list = []
    address = urllib.parse.urlsplit(world.server.url)
    for begin in range(0, len(inputs), _ROWS):
        instances = [
            {name: _mapped(_json, value) for name, value in _for_signature(world, one).items()}
            for one in inputs[begin : begin + _ROWS]
        ]
        body = {"signature_name": world.kind.signature, "instances": instances}
        connection = http.client.HTTPConnection(address.hostname, address.port, timeout=60)
        headers = {"Content-Type": "application/json"}
        path = "/v1/models/export:predict"
        connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        values = json.loads(response.read())
        connection.close()
        if response.status != 200:
            message = values["error"]
            for column, name in world.kind.inputs_of_signature.items():
                message = message.replace(f"`{name}`", f"`{column}`")
            raise InputError(message)
        rows = values["predictions"]
        if not isinstance(rows[0], dict):  # REST omits the name of an only output
            rows = [{"score": row} for row in rows]
        found += [_of_signature(world, row) for row in rows]
    return found


#: All ways but `answer`, with which they are compared.
WAYS = {
    one.__name__: one
    for one in (
        predict,
        development_scores,
        task_answers,
        command_of_run,
        command_of_export,
        predictor,
        saved_model,
        server,
    )
}
#: Those that take bytes.
OF_BYTES = ("predict", "saved_model", "server")
#: Those that take no text that is not Unicode: files and tensors are UTF-8.
OF_UNICODE = ("development_scores", "saved_model")
