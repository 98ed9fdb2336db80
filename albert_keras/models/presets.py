"""Where `from_preset` finds weights and tokenizers: the only place where models look upwards.

Keras users expect `from_preset` on the class, and what reads a folder builds models. So this module
imports the readers, and only when it is called.
"""

from pathlib import Path
from typing import Any

from data_pipeline.tokenizers.tokenization import Tokenizer


def open_preset(source: Any, step: int | str | None = None) -> Any:
    """Returns weights, shape and tokenizer of a source: an OpenedModel.

    Args:
        source: str or Path. As for `open_model`; an OpenedModel is returned as it is.
        step: Checkpoint of a run, or "best"; None means the newest valid one.

    Raises:
        InputError: If there is no such model, or it is damaged.
    """
    from albert_keras.formats.open_model import open_model

    return open_model(source, step) if isinstance(source, str | Path) else source


def open_tokenizer(source: Any) -> Tokenizer:
    """Returns a tokenizer, or the tokenizer of a source; raises InputError if it has none."""
    from albert_keras.formats.vocabulary import load_tokenizer

    return source if isinstance(source, Tokenizer) else load_tokenizer(source)
