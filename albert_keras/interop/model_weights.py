"""A model as numbers: what every format is read into and written from."""

from typing import NamedTuple

import numpy as np

from albert_keras.config import AlbertConfig

#: Names of the parts a model may have besides the encoder -> how their tensors' names begin.
HEADS = {
    "masked_lm": ("cls/predictions/",),
    "sentence_order": ("cls/seq_relationship/",),
    "classifier": ("output_weights", "output_bias"),
    "spans": ("cls/squad/",),
    "spans_or_none": ("start_logits/", "end_logits/", "answer_class/"),
}


class ModelWeights(NamedTuple):
    """The weights of a model, named and laid out as in google-research/albert.

    Attributes:
        config: AlbertConfig.
        tensors: dict of name -> float32 array. The whole encoder ("bert/..."), and heads.
        source: str. Where they came from, for people.
        tokenizer_files: dict of file name -> bytes. What came along: `spiece.model`, `vocab.txt`
            and so on; may be empty.
        labels: tuple of str. Names of classes, where the source tells.
    """

    config: AlbertConfig
    tensors: dict[str, np.ndarray]
    source: str
    tokenizer_files: dict[str, bytes] = {}  # never changed
    labels: tuple[str, ...] = ()

    @property
    def heads(self):
        """tuple of str. Which of `HEADS` there are."""
        return tuple(head for head, starts in HEADS.items() if any(map(self._has, starts)))

    def _has(self, start):
        return any(name.startswith(start) for name in self.tensors)
