"""Refuses blank texts, which the graph of an export answers as if they said something.

The rule and the message are the same as in `Task.example`, so that command line, page and REST
agree. Other model servers have no such rule.
"""

from collections.abc import Collection, Mapping

import numpy as np

from albert_keras.serving.protocol.status import invalid
from albert_keras.tasks.task import check_text
from data_pipeline.errors import InputError

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


def check_not_blank(
    name: str,
    tensors: Mapping[str, np.ndarray],
    signatures: Collection[str],
    requires_pair: bool = False,
):
    """Raises StatusError if a text of a request must not be blank, but is.

    Args:
        name: The signature.
        tensors: Its inputs; texts are bytes.
        signatures: Names of all signatures of the model; they show what a text consists of.
        requires_pair: Whether the second text of a pair must not be blank either.
    """
    required = _REQUIRED.get(name, ())
    if requires_pair and name == "text_pair":
        required += ("second",)
    for alias in required:
        if alias not in tensors or tensors[alias].dtype.kind not in "OSU":
            continue
        rows = tensors[alias].ravel().tolist()
        for number, row in enumerate(rows, start=1):
            text = row.decode(errors="replace") if isinstance(row, bytes) else row
            for part_name, part in _parts(name, alias, text, signatures, requires_pair):
                try:
                    check_text(part_name, part)
                except InputError as error:
                    location = f"Row {number} of {len(rows)}: " if len(rows) > 1 else ""
                    raise invalid(f"{location}{error}") from None


def _parts(name, alias, text, signatures, requires_pair):
    """Returns the parts of a text that must not be blank, with their names."""
    first, _, second = text.partition("\t")
    if name == "serving_default" and "question_answering" in signatures:
        return [(alias, first), (alias, second)]
    if name == "serving_default" and "text_pair" in signatures:
        return [(alias, first), *([("pair", second)] if requires_pair else [])]
    return [(alias, text)]
