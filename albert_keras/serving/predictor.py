"""Text in, answer out, from an exported folder; needs tensorflow and tensorflow-text only."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.serving.layout import MASK_LITERAL, TOP_K, versions
from data_pipeline.errors import InputError


class Candidate(NamedTuple):
    """A piece for a [MASK]: `piece` str as in the vocabulary, and its probability, `score`."""

    piece: str
    score: float


class FilledMask(NamedTuple):
    """Answer for one text.

    Attributes:
        text: str. As given.
        filled_text: str. With the likeliest piece for each [MASK].
        masks: tuple. For each [MASK] a tuple of Candidate, likeliest first; empty for a mask
            beyond the length the model takes.
    """

    text: str
    filled_text: str
    masks: tuple[tuple[Candidate, ...], ...]


class SentenceOrder(NamedTuple):
    """Whether `first` comes before `second`, as a probability, `in_order`."""

    first: str
    second: str
    in_order: float


class Predictor:
    """Answers of an exported model.

    A SavedModel is a program: open only those you trust.

    Args:
        path: str or Path. Folder of an export, of the name (takes the newest version) or of one
            version.

    Raises:
        InputError: If there is no export.
    """

    def __init__(self, path):
        path = Path(path)
        if not (path / "saved_model.pb").is_file():
            found = versions(path)
            if not found:
                raise InputError(
                    f"`{path}` holds no exported model. Make one with `albert-keras export`."
                )
            path = path / str(found[-1])
        import tensorflow as tf
        import tensorflow_text  # noqa: F401 (registers the operations of the tokenizer)

        self.path = path
        self._model = tf.saved_model.load(str(path))
        self._tf = tf

    def fill_mask(self, texts, top_k=5):
        """Fills each `[MASK]` of some texts.

        Args:
            texts: list of str.
            top_k: int. Candidates per mask, at most 10.

        Returns:
            list of FilledMask.

        Raises:
            InputError: If a text holds no `[MASK]`.
        """
        if not 1 <= top_k <= TOP_K:
            raise InputError(f"`top_k` should be from 1 to {TOP_K}. Received: {top_k}.")
        for text in texts:
            if MASK_LITERAL not in text:
                raise InputError(f"`{text}` holds no {MASK_LITERAL} to fill.")
        answers = self._ask("fill_mask", text=texts)
        return [
            FilledMask(text, filled.decode(errors="replace"), self._candidates(*answer, top_k))
            for text, filled, *answer in zip(
                texts,
                answers["filled_text"],
                answers["pieces"],
                answers["scores"],
                map(lambda text: text.count(MASK_LITERAL), texts),
                strict=True,
            )
        ]

    def sentence_order(self, firsts, seconds):
        """Tells for pairs of texts how likely they stand in this order.

        Args:
            firsts, seconds: list of str, equally long.

        Returns:
            list of SentenceOrder.

        Raises:
            InputError: If the model has no such head.
        """
        answers = self._ask("sentence_order", first=firsts, second=seconds)
        return [
            SentenceOrder(first, second, float(in_order))
            for first, second, in_order in zip(firsts, seconds, answers["in_order"], strict=True)
        ]

    def encode(self, texts):
        """Returns a vector for each text: `pooled_output`, float32 [B, H]."""
        return self._ask("encode", text=texts)["pooled_output"]

    def _ask(self, signature, **inputs):
        if signature not in self._model.signatures:
            raise InputError(f"`{self.path}` has no signature `{signature}`.")
        # Undecodable command-line bytes arrive as lone surrogates; hand them on as they came.
        tensors = {
            name: self._tf.constant([text.encode(errors="surrogateescape") for text in texts])
            for name, texts in inputs.items()
        }
        answers = self._model.signatures[signature](**tensors)
        return {name: value.numpy() for name, value in answers.items()}

    @staticmethod
    def _candidates(pieces, scores, num_masks, top_k):
        return tuple(
            tuple(
                Candidate(piece.decode(), float(np.round(score, 6)))
                for piece, score in zip(pieces[mask, :top_k], scores[mask, :top_k], strict=True)
                if piece
            )
            for mask in range(num_masks)
        )


def predict(export, texts, top_k=5):
    """Fills the masks of some texts with an exported model; see `Predictor.fill_mask`."""
    return Predictor(export).fill_mask(texts, top_k)
