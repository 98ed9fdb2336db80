"""What every contestant is asked: texts of an exact number of pieces, their ids, the answer."""

from typing import NamedTuple

import numpy as np

from data_pipeline.errors import InputError

#: An answer in float32 that differs by more is another computation, not rounding.
TOLERANCE = 1e-3


class Question(NamedTuple):
    """One batch, the same for all.

    Attributes:
        texts: tuple of str, B of them.
        ids: int32 array [B, S]. The texts as [CLS] pieces [SEP], without padding.
        expected: float32 array [B, H]. The vectors of our encoder in float32, outside any export.
    """

    texts: tuple[str, ...]
    ids: np.ndarray
    expected: np.ndarray

    def first(self, batch_size):
        """Returns the Question of the first texts only."""
        return Question(*(values[:batch_size] for values in self))

    def inputs(self):
        """Returns dict of int64 [B, S], as the tokenizers of transformers name them."""
        ids = self.ids.astype(np.int64)
        return {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }


def difference(answer, question, dtype):
    """Checks an answer and tells how far it is from the expected one.

    Args:
        answer: array [B, H].
        question: Question.
        dtype: str. Only an answer in "float32" has to agree; the others compute with less.

    Returns:
        float. The largest absolute difference.

    Raises:
        InputError: If it has another shape, is not finite, or differs in float32 by over 0.001.
    """
    answer = np.asarray(answer, np.float32)
    if answer.shape != question.expected.shape:
        raise InputError(
            f"An answer should have the shape {question.expected.shape}. Received: {answer.shape}."
        )
    largest = float(np.abs(answer - question.expected).max())
    if not np.isfinite(largest) or (dtype == "float32" and largest > TOLERANCE):
        raise InputError(
            f"An answer in {dtype} should be finite, and in float32 within {TOLERANCE} of that of "
            f"the other libraries with the same weights. Received: a difference of {largest}."
        )
    return largest


def exact_texts(paragraphs, tokenizer, num_pieces, count):
    """Cuts text so that each part has exactly so many pieces.

    Args:
        paragraphs: iterable of str.
        tokenizer: Tokenizer.
        num_pieces: int. Pieces of a part, [CLS] and [SEP] not counted.
        count: int. Parts.

    Returns:
        tuple of str, one after the other as they stand in the text, white space made even. Where
        the text is too short for so many, they repeat.

    Raises:
        InputError: If the text has no part of this length.
    """
    texts, words, size = [], [], 0
    for paragraph in paragraphs:
        for word in paragraph.split():
            words.append(word)
            size += len(tokenizer.encode(word))
            while size > num_pieces:  # begin later: whole words do not always fit
                size -= len(tokenizer.encode(words.pop(0)))
            if size == num_pieces:
                text = " ".join(words)
                if len(tokenizer.encode(text)) == num_pieces:
                    texts.append(text)
                words, size = [], 0
            if len(texts) == count:
                return tuple(texts)
    if not texts:
        raise InputError(
            f"The corpus should hold a text of {num_pieces} pieces. Received: one without."
        )
    return tuple(texts[number % len(texts)] for number in range(count))
