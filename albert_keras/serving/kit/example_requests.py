"""One request to each signature of a model, with texts that fit its task and its language."""

from pathlib import Path
from typing import Any

from albert_keras.serving.exported_task import read_task
from albert_keras.serving.sample_texts import sample_texts
from albert_keras.serving.saved_model.signature_methods import Signature, read_signatures

#: Signatures of pre-trained models that read `[MASK]` as a mask.
_FILLS_MASKS = ("serving_default", "fill_mask")


def example_requests(version_folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Returns the method and the body of a REST request to each signature of a version."""
    exported, samples = read_task(version_folder), sample_texts(version_folder)
    task = exported and exported.task
    takes_pair = task is not None and task.takes_pair
    example = samples.example(task and task.kind, takes_pair)
    # What other signatures call the same texts. In a single `text` they are separated by a tab.
    inputs = samples._asdict() | {"text": samples.context} | example
    if task is not None and (takes_pair or task.kind.finds_spans):
        pair = ("text", "pair") if takes_pair else ("question", "context")
        first, second = (example[name] for name in pair)
        inputs |= {"text": f"{first}\t{second}"}
        inputs |= {"first": first, "second": second} if takes_pair else {}
    requests = []
    for signature in read_signatures(version_folder):
        # Elsewhere `[MASK]` is a text like any other.
        fills = signature.name in _FILLS_MASKS
        own = inputs if task is not None or fills else inputs | {"text": samples.first}
        requests.append((signature.method, _body(signature, own, example)))
    return requests


def _body(signature: Signature, inputs, example):
    if signature.method == "predict":
        row = {name: _row(name, spec, inputs) for name, spec in signature.inputs.items()}
        return {"signature_name": signature.name, "inputs": row}
    features = {name: example[name] for name in signature.features if name in example}
    return {"signature_name": signature.name, "examples": [features or {"text": inputs["text"]}]}


def _row(name, spec, inputs):
    """Returns one row for an input: nested lists, of length 3 where the shape allows any."""
    sizes = [size or (1 if axis == 0 else 3) for axis, size in enumerate(spec.shape)]
    if spec.dtype.name == "string":
        value = inputs.get(name, inputs["text"])
        if isinstance(value, list):
            return [value] if len(sizes) == 2 else value[:1]
    else:
        value = 1 if "mask" in name else 0 if "segment" in name or "type" in name else 5
        value = float(value) if spec.dtype.is_floating else value
    for size in reversed(sizes):
        value = [value] * size
    return value
