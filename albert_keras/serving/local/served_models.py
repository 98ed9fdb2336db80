"""Loaded exports that answer the requests of a local server."""

from pathlib import Path
from typing import Any

import numpy as np
from google.protobuf.json_format import MessageToDict

from albert_keras.serving.local import rest_json
from albert_keras.serving.predictor import Predictor
from albert_keras.serving.rest_client import signatures_from_json
from albert_keras.serving.sample_texts import sample_texts
from albert_keras.serving.saved_model.server_ops import read_saved_model
from albert_keras.serving.saved_model.signature_methods import read_signatures
from albert_keras.serving.saved_model.warm_up import sample_inputs
from albert_keras.tasks.kinds import SIMILARITY
from albert_keras.tasks.task import check_text
from data_pipeline.errors import InputError

#: Maximum numbers of texts of a request, and of values of an answer; memory grows with them.
_MAX_TEXTS, _MAX_VALUES = 64, 1 << 21
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
    """The version of a model in a folder, loaded.

    Raises:
        InputError: If the export is damaged or uses operations that are not allowed.
    """

    def __init__(self, name: str, folder: Path):
        self.name, self.version = name, int(folder.name)
        self._predictor = Predictor(folder)
        self._signatures = {one.name: one for one in read_signatures(folder)}
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
            "signatures": {name: one._asdict() for name, one in signatures.items()},
            "task": task
            and {
                "name": task.config.name,
                "labels": list(task.labels),
                "takes_pair": task.takes_pair,
                "finds_spans": task.kind.finds_spans,
            },
            "samples": self._samples._asdict(),
        }

    def answer(self, method: str, body: bytes) -> bytes:
        """Answers a request.

        Args:
            method: "predict", "classify" or "regress".
            body: JSON.

        Returns:
            JSON.

        Raises:
            InputError: If the request is not valid.
        """
        document, name = rest_json.read_body(body)
        signature = self._signatures.get(name)
        if signature is None:
            raise InputError(f"The model has no signature `{name}`. Metadata lists all of them.")
        if method != "predict" and signature.method != method:
            raise InputError(f"The signature `{name}` cannot {method} examples.")
        if method == "predict":
            tensors = rest_json.read_predict(document, signature.inputs)
            self._check_texts(name, tensors)
        else:
            tensors = {"inputs": np.array(rest_json.read_examples(document), object)}
        for alias, array in tensors.items():
            # The last dimension of numbers is the tokens of a text.
            rows = array.size if array.dtype == object else array[..., :1].size
            if rows > _MAX_TEXTS:
                raise InputError(
                    f"The input `{alias}` must have at most {_MAX_TEXTS} texts. Received: {rows}."
                )
        outputs = self._predictor.call(name, tensors)
        values = sum(array.size for array in outputs.values())
        if values > _MAX_VALUES:
            raise InputError(
                f"The answer must have at most {_MAX_VALUES} values. It has {values}: send fewer "
                "or shorter texts."
            )
        if method == "predict":
            return rest_json.encode(rest_json.write_predict(outputs, "instances" in document))
        return rest_json.encode(rest_json.write_examples(outputs))

    def _check_texts(self, name, tensors):
        """Refuses blank texts and missing second texts, as `Task.example` does.

        The graph answers them as if they said something.
        """
        for alias in _REQUIRED.get(name, ()):
            if alias not in tensors or tensors[alias].dtype != object:
                continue
            for row in tensors[alias].ravel():
                for part_name, part in self._parts(name, alias, row.decode(errors="replace")):
                    check_text(part_name, part)
        task = self._predictor.task
        if name == "text_pair" and task is not None and task.kind is SIMILARITY:
            for row in tensors["second"].ravel():
                check_text("pair", row.decode(errors="replace"))

    def _parts(self, name, alias, text):
        """Returns the parts of a text that must not be blank, with their names."""
        first, tab, second = text.partition("\t")
        task = self._predictor.task
        if name != "serving_default" or task is None or alias != "text":
            return [(alias, text)]
        if task.kind.finds_spans:
            return [("question", first), ("context", second)]
        if task.takes_pair and not tab:
            raise InputError(
                "The model takes pairs: `text` must be two texts separated by a tab; or call the "
                f"signature `text_pair` with `first` and `second`. Received: {text[:60]!r}."
            )
        return [("text", first), *([("pair", second)] if task.kind is SIMILARITY else [])]
