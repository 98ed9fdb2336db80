"""The model and batch that a benchmark measures: `albert-base`, `6x256`."""

import re
from typing import NamedTuple

from albert_keras.config import AlbertConfig

_HEAD_SIZE = 64
_VOCAB_SIZE = 30_000
_PREDICTED_FRACTION = 0.15


class Shape(NamedTuple):
    """A model and a batch."""

    model: str  #: As it was requested.
    config: AlbertConfig  #: V = 30,000, without dropout.
    batch_size: int  #: Sequences, B.
    max_seq_length: int  #: Tokens of each sequence, S; none is padding.

    @property
    def predictions(self) -> int:
        """Masked tokens of a sequence, P: 15 % of S, rounded down, at least one."""
        return max(1, int(_PREDICTED_FRACTION * self.max_seq_length))

    @property
    def tokens(self) -> int:
        """Tokens of a batch, B·S."""
        return self.batch_size * self.max_seq_length


def make_shape(model: str, batch_size: int = 8, max_seq_length: int = 128) -> Shape:
    """Returns the Shape of a named model, with V = 30,000 and no dropout, or of LAYERSxHIDDEN.

    "6x256" has L = 6, H = 256, heads of 64, I = 4·H, E = 128. InputError for an unknown model.
    """
    return Shape(model, _config(model), batch_size, max_seq_length)


def _config(model: str) -> AlbertConfig:
    common = {
        "vocab_size": _VOCAB_SIZE,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    }
    sizes = re.fullmatch(r"(\d+)x(\d+)", model)
    if not sizes:
        return AlbertConfig.from_name(model, **common)
    layers, hidden_size = map(int, sizes.groups())
    return AlbertConfig(
        num_hidden_layers=layers,
        hidden_size=hidden_size,
        num_attention_heads=hidden_size // _HEAD_SIZE,
        intermediate_size=4 * hidden_size,
        **common,
    )
