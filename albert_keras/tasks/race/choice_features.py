"""Questions with options about a passage → `[CLS] passage [SEP] question with option [SEP]`."""

import re

import numpy as np

from albert_keras.tasks.feature_cache import cached_features
from albert_keras.tasks.pair_features import EncodedPairs, encode_texts, lay_out
from albert_keras.tasks.task import Features
from data_pipeline.errors import InputError

# The blank of a question: the underscore and what clean-up turns into it.
_BLANK = re.compile("[_\ufe33\ufe34\ufe4d-\ufe4f\uff3f]")
_USUAL_OPTIONS = 4


class ChoiceFeatures(Features):
    """One row per question, each of as many sequences as it has options.

    Args:
        pairs: EncodedPairs. N * C of them, the options of a question one after another.
        options: int. C.
        tokenizer: Tokenizer. Of its symbols rows are made.
        max_seq_length: int. S.
        labels: int32 [N] or None. Which option is right.

    Attributes:
        lengths, max_seq_length: as in `Features`.
    """

    def __init__(self, pairs, options, tokenizer, max_seq_length, labels=None):
        self.max_seq_length = max_seq_length
        self._pairs, self._options, self._tokenizer = pairs, options, tokenizer
        self._labels = labels
        symbols = np.where(pairs.lengths[:, 1] > 0, 3, 2)
        lengths = pairs.lengths.sum(axis=1) + symbols
        self.lengths = lengths.reshape(-1, options).max(axis=1)

    def batch(self, rows, length=None) -> dict[str, np.ndarray]:
        """Lays out some questions, int32 [B, C, length]; see `Features.batch`."""
        rows = np.asarray(rows, np.int64)
        pairs = (rows[:, None] * self._options + np.arange(self._options)).ravel()
        chosen = EncodedPairs(
            self._pairs.ids, self._pairs.starts[pairs], self._pairs.lengths[pairs]
        )
        batch = _lay_out(chosen, self._options, self._tokenizer, length or self.max_seq_length)
        return batch if self._labels is None else {**batch, "labels": self._labels[rows]}


def make_choice_features(
    examples, tokenizer, max_seq_length=512, max_qa_length=128, training=False, cache=None
) -> ChoiceFeatures:
    """Encodes questions, or takes what was encoded earlier.

    Args:
        examples, tokenizer, max_seq_length, max_qa_length: as in `choice_features`.
        training: bool. Whether every question has to have a label.
        cache: path or None. Folder where pieces are kept by their content; None keeps nothing.

    Raises:
        InputError: As `choice_features`; or if there is no question, or one has no label.
    """
    if not examples:
        raise InputError("There should be at least one question. Received: none.")
    unlabelled = [example.id for example in examples if example.label is None]
    if training and unlabelled:
        raise InputError(
            f"For training, every question should have an answer. {len(unlabelled)} of "
            f"{len(examples)} have none, the first is {unlabelled[0]!r}."
        )

    def build():
        return encode_choices(examples, tokenizer, max_seq_length, max_qa_length)._asdict()

    if cache is None:
        arrays = build()
    else:
        settings = {"max_seq_length": max_seq_length, "max_qa_length": max_qa_length}
        arrays = cached_features(cache, "choice", examples, tokenizer, settings, build)
    labels = None if unlabelled else np.array([one.label for one in examples], np.int32)
    options = _count_options(examples)
    return ChoiceFeatures(EncodedPairs(**arrays), options, tokenizer, max_seq_length, labels)


def choice_text(question, option) -> str:
    """Puts an option into the blanks of a question, or after a question that has none.

    Args:
        question: str. A blank is `_`, or any other low line that clean-up makes one of.
        option: str.

    Returns:
        str.
    """
    question, option = question.strip(), option.strip()
    filled, blanks = _BLANK.subn(lambda _: option, question)
    return filled if blanks else f"{question} {option}"


def choice_features(examples, tokenizer, max_seq_length=512, max_qa_length=128):
    """Lays out `[CLS] passage [SEP] question with option [SEP]` for every option.

    Of question and option the last pieces stay, of the passage the first ones.

    Args:
        examples: list of ChoiceExample. N of them, all with C options.
        tokenizer: Tokenizer.
        max_seq_length: int. S.
        max_qa_length: int. Most pieces of question and option, at least 1 and below S - 3.

    Returns:
        dict of int32 [N, C, S]: `input_ids`, `input_mask` and `segment_ids`, as in
        `pair_features`.

    Raises:
        InputError: If lengths do not fit or the examples have different numbers of options.

    Source:
        `convert_single_example` in google-research/albert, `race_utils.py`.
    """
    choices = encode_choices(examples, tokenizer, max_seq_length, max_qa_length)
    return _lay_out(choices, _count_options(examples), tokenizer, max_seq_length)


def encode_choices(examples, tokenizer, max_seq_length=512, max_qa_length=128) -> EncodedPairs:
    """Encodes and truncates without laying out: where padded rows of all questions are too many.

    Arguments and errors as in `choice_features`.

    Returns:
        EncodedPairs. N * C of them, the options of a question one after another.
    """
    _count_options(examples)
    if not 1 <= max_qa_length < max_seq_length - 3:
        raise InputError(
            "`max_qa_length` should be at least 1 and less than `max_seq_length` - 3. "
            f"Received: max_qa_length={max_qa_length}, max_seq_length={max_seq_length}."
        )
    texts = [example.context for example in examples for _ in example.options]
    texts += [
        choice_text(example.question, option) for example in examples for option in example.options
    ]
    ids, starts, lengths = encode_texts(texts, tokenizer)
    starts, lengths = starts.reshape(2, -1).T.copy(), lengths.reshape(2, -1).T.copy()
    surplus = np.maximum(lengths[:, 1] - max_qa_length, 0)
    starts[:, 1] += surplus
    lengths[:, 1] -= surplus
    lengths[:, 0] = np.minimum(lengths[:, 0], max_seq_length - 3 - lengths[:, 1])
    return EncodedPairs(ids, starts, lengths)


def _count_options(examples):
    counts = {len(example.options) for example in examples}
    if len(counts) > 1:
        raise InputError(
            f"All questions should have equally many options. Received: {sorted(counts)}."
        )
    return max(counts, default=_USUAL_OPTIONS)


def _lay_out(pairs, options, tokenizer, length):
    features = lay_out(pairs, tokenizer, length)
    return {name: values.reshape(-1, options, length) for name, values in features.items()}
