"""The outputs of a model, checked, and answers → files."""

import json
import re
from pathlib import Path

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.files import whole_file

_WHITE_SPACE = re.compile(r"\s+")


def logits_of(outputs: dict[str, np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """Returns the `logits` of a model, float64 of the required shape.

    Raises:
        InputError: If the array has another shape, or a number in it is not finite.
    """
    check_numbers(outputs)
    values = np.asarray(outputs["logits"]).astype(np.float64)
    if values.shape != tuple(shape):
        raise InputError(
            f"The `logits` of a model must be {list(shape)}. Received: {list(values.shape)}."
        )
    return values


def check_numbers(outputs: dict[str, np.ndarray]):
    """Raises InputError if an output is NaN or infinite."""
    for name, array in outputs.items():
        faults = np.count_nonzero(~np.isfinite(array))
        if faults:
            raise InputError(
                f"{faults} of {np.size(array)} `{name}` of the model are not finite. Its training "
                "may have diverged; a lower learning rate may help."
            )


def write_predictions(folder: str | Path, split: str, answers: list) -> Path:
    """Writes answers to `predictions-SPLIT.jsonl`: a line of JSON for each, with its fields.

    The folder is created if missing. Raises ValueError if a number is not finite.
    """
    path = Path(folder) / f"predictions-{split}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
        # In ASCII, so that a line separator or half a surrogate pair in a text does no harm.
        file.writelines(json.dumps(answer._asdict(), allow_nan=False) + "\n" for answer in answers)
    return path


def one_line(*texts: str | None) -> str:
    """Returns texts in one line without tabs, separated by ` ||| `; None is skipped."""
    lines = [_WHITE_SPACE.sub(" ", text).strip() for text in texts if text is not None]
    return " ||| ".join(lines)
