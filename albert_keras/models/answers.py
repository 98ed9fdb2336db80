"""The answers of models of texts: named tuples, made of what `read_out` of a model returns.

A model, its export and a server return the same arrays, so that their answers are the same. No
TensorFlow here.
"""

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
import scipy.special

from data_pipeline.errors import InputError

#: A label of several applies from this probability on, unless a threshold was set or fitted.
THRESHOLD = 0.5
#: Scores of start and end where there are fewer spans, see `SpanSearch`.
_NO_SPAN = -1e6
#: Text and scores of a question without any possible span: where each has an answer, as
#: google-research/albert writes it, and where it may have none.
_NOTHING = {False: {"empty": (0.0, 0.0)}, True: {"": (-1e6, -1e6)}}


class ClassAnswer(NamedTuple):
    """A class: `label` str, its `probability`, and the `probabilities` of all classes by name."""

    id: str
    label: str
    probability: float
    probabilities: dict[str, float]
    dropped_tokens: int = 0  # tokens of the input that the model did not read


class LabelsAnswer(NamedTuple):
    """The labels that apply, and the probability of each label by its name."""

    id: str
    labels: tuple[str, ...]
    probabilities: dict[str, float]
    dropped_tokens: int = 0  # tokens of the input that the model did not read


class ScoreAnswer(NamedTuple):
    """A score as the model returns it; it may be outside the range of labels."""

    id: str
    score: float
    dropped_tokens: int = 0  # tokens of the input that the model did not read


class ScoresAnswer(NamedTuple):
    """Several scores by name, as in `ScoreAnswer`."""

    id: str
    scores: dict[str, float]
    dropped_tokens: int = 0


class ChoiceAnswer(NamedTuple):
    """The option chosen for a question."""

    id: str
    choice: int  # its number, from 0
    option: str  # its text
    probability: float
    probabilities: tuple[float, ...]  # of all options
    #: Tokens of passage, question and option that the model did not read; of the options the most.
    dropped_tokens: int = 0


class TagAnswer(NamedTuple):
    """The tags of a sentence, one for each word, and the probabilities of these tags."""

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...]
    probabilities: tuple[float, ...]
    dropped_words: int = 0  # words at the end that the model did not read; they are not in `words`


class SpanAnswer(NamedTuple):
    """An answer to a question about a passage."""

    id: str
    #: As in the passage; "" for no answer. Where each question has an answer, it is `empty` if no
    #: span was possible.
    text: str
    probability: float  # of a text among the texts of `nbest`; of no answer, from `null_score`
    start: int | None  # the first character of the text in the passage; None if no answer
    end: int | None  # one more than the last
    null_score: float | None  # the logit of "no answer"; None if each question has an answer
    #: "text", "probability", "start_log_prob" and "end_log_prob" of the best texts, best first.
    nbest: list[dict[str, Any]]
    dropped_tokens: int = 0  # tokens of the question that the model did not read

    def at_threshold(self, threshold: float) -> "SpanAnswer":
        """Returns the answer, or "no answer" from a `null_score` of `threshold` on.

        It must be one that was given whatever the null score, with an infinite threshold.
        """
        has_answer = self.null_score is None or self.null_score < threshold
        return self if has_answer else self.unanswered()

    def unanswered(self) -> "SpanAnswer":
        """Returns "no answer", with its probability, instead of the text."""
        probability = float(scipy.special.expit(self.null_score))
        return self._replace(text="", probability=probability, start=None, end=None)


def check_finite(arrays: Mapping[str, np.ndarray]) -> None:
    """Raises InputError if an output of a model is NaN or infinite."""
    for name, array in arrays.items():
        if array.dtype.kind != "f":
            continue
        faults = np.count_nonzero(~np.isfinite(array))
        if faults:
            raise InputError(
                f"{faults} of {np.size(array)} `{name}` of the model are not finite. Its training "
                "may have diverged; a lower learning rate may help."
            )


def with_dropped(answers: list[Any], arrays: Mapping[str, np.ndarray]) -> list[Any]:
    """Returns answers with the "dropped_tokens" of their examples, int [N]."""
    pairs = zip(answers, arrays["dropped_tokens"].tolist(), strict=True)
    return [answer._replace(dropped_tokens=count) for answer, count in pairs]


def class_answers(
    ids: Sequence[str], labels: Sequence[str], values: np.ndarray, numbers: Sequence[int]
) -> list[ClassAnswer]:
    """Returns N answers with the classes of these numbers; `values` are probabilities [N, C]."""
    return [
        ClassAnswer(id, labels[number], row[number], dict(zip(labels, row, strict=True)))
        for id, row, number in zip(ids, values.tolist(), numbers, strict=True)
    ]


def labels_answers(
    ids: Sequence[str], labels: Sequence[str], values: np.ndarray, thresholds: Any
) -> list[LabelsAnswer]:
    """Returns N answers with the labels whose probability, [N, C], reaches its threshold."""
    pairs = zip(ids, values.tolist(), (values >= thresholds).tolist(), strict=True)
    return [
        LabelsAnswer(id, tuple(compress(labels, applies)), dict(zip(labels, row, strict=True)))
        for id, row, applies in pairs
    ]


def scores_answers(ids: Sequence[str], labels: Sequence[str], values: np.ndarray) -> list[Any]:
    """Returns N answers with numbers, [N, C]: a ScoreAnswer each, or a ScoresAnswer with names."""
    if values.shape[1] == 1:
        return [ScoreAnswer(*pair) for pair in zip(ids, values[:, 0].tolist(), strict=True)]
    rows = zip(ids, values.tolist(), strict=True)
    return [ScoresAnswer(id, dict(zip(labels, row, strict=True))) for id, row in rows]


def choice_answers(
    ids: Sequence[str], options: Sequence[Sequence[str]], values: Sequence[Any], choices: Any
) -> list[ChoiceAnswer]:
    """Returns N answers with the options of these numbers; `values` are probabilities [N, C]."""
    rows = zip(ids, options, values, choices, strict=True)
    return [
        ChoiceAnswer(id, number, texts[number], row[number], tuple(row))
        for id, texts, row, number in rows
    ]


def span_answers(
    ids: Sequence[str], contexts: Sequence[str], arrays: Mapping[str, np.ndarray]
) -> list[SpanAnswer]:
    """Returns the answers to questions; `arrays` are those of `SpanSearch.answers`.

    Source:
        `write_predictions_v1` and the same for v2 in google-research/albert, `squad_utils.py`.
    """
    names = ("nbest_starts", "nbest_ends", "nbest_start_scores", "nbest_end_scores")
    columns = [arrays[name].tolist() for name in names]
    n_best = arrays["nbest_starts"].shape[1] // 2  # a text counts once, wherever it is
    has_null = "null_score" in arrays
    answers = []
    for number, (id, context) in enumerate(zip(ids, contexts, strict=True)):
        spans = zip(*(column[number] for column in columns), strict=True)
        # Without a place, but with scores, is a token that is white space: an empty text.
        found = [span for span in spans if span[2] > _NO_SPAN]
        texts, place = _different_texts(context, found, n_best)
        nbest = _with_probabilities(texts or _NOTHING[has_null])
        answer = SpanAnswer(id, nbest[0]["text"], nbest[0]["probability"], None, None, None, nbest)
        if answer.text and place is not None:
            answer = answer._replace(start=place[0], end=place[1])
        if has_null:
            answer = answer._replace(null_score=float(arrays["null_score"][number]))
            answer = answer if arrays["answer"][number] != b"" else answer.unanswered()
        answers.append(answer)
    return answers


def _different_texts(context, spans, count):
    """Returns the scores of at most `count` different texts, and where the first one is."""
    texts, place = {}, None
    for start, end, start_score, end_score in spans:
        if len(texts) >= count:
            break
        place = place or (start, end)
        texts.setdefault(context[max(start, 0) : max(end, 0)], (start_score, end_score))
    return texts, place


def _with_probabilities(texts):
    scores = [start + end for start, end in texts.values()]
    probabilities = scipy.special.softmax(scores).tolist()
    return [
        {"text": text, "probability": probability, "start_log_prob": start, "end_log_prob": end}
        for (text, (start, end)), probability in zip(texts.items(), probabilities, strict=True)
    ]
