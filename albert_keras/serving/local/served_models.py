"""Loaded exports that answer the requests of a local server, in the JSON of the model server."""

from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict

from albert_keras.serving.local.rest_json import read_inputs, read_request, write_answer
from albert_keras.serving.predictor import Predictor
from albert_keras.serving.saved_model.server_ops import read_saved_model
from albert_keras.serving.saved_model.signatures import (
    as_json,
    read_signatures,
    sample_inputs,
)
from data_pipeline.errors import InputError

#: Maximum number of texts of a request; memory grows with them.
_MAX_TEXTS = 64


class ServedModel:
    """The version of a model in a folder, loaded; its signatures for predict requests.

    Raises:
        InputError: If the export is damaged or uses operations that are not allowed.
    """

    def __init__(self, name: str, folder: Path):
        self.name, self.version = name, int(folder.name)
        self._predictor = Predictor(folder)
        self._signatures = {one.name: one for one in read_signatures(folder)}
        (graph,) = read_saved_model(folder).meta_graphs
        #: The signatures in the JSON of `SignatureDef` messages.
        self.definitions = {
            name: MessageToDict(graph.signature_def[name], preserving_proto_field_name=True)
            for name in self._signatures
        }
        for signature in self._signatures.values():  # the first call takes longer than later ones
            self._predictor.ask(signature.name, **sample_inputs(signature, [b""], length=1))

    def describe(self) -> dict[str, Any]:
        """Returns the description of the model that the page needs, plain JSON."""
        task = self._predictor.task
        return {
            "name": self.name,
            "version": self.version,
            "precision": self._predictor.precision,
            "signatures": as_json(self._signatures.values()),
            "task": task and task.config.name,
        }

    def answer(self, body: bytes) -> bytes:
        """Answers a predict request, JSON; InputError if it is not valid."""
        document, name = read_request(body)
        signature = self._signatures.get(name)
        if signature is None:
            raise InputError(f"The model has no signature `{name}`. Metadata lists all of them.")
        tensors = read_inputs(document, signature.inputs)
        for alias, array in tensors.items():
            # The last dimension of numbers is the tokens of a text.
            rows = array.size if array.dtype == object else array[..., :1].size
            if rows > _MAX_TEXTS:
                raise InputError(
                    f"The input `{alias}` must have at most {_MAX_TEXTS} texts. Received: {rows}."
                )
        return write_answer(self._predictor.ask(name, **tensors), "instances" in document)
