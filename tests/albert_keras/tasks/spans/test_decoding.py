import math

import numpy as np
import pytest

from albert_keras.tasks.examples import QuestionExample
from albert_keras.tasks.spans.decoding import decode
from albert_keras.tasks.spans.scores import apply_null_threshold
from albert_keras.tasks.spans.windows import span_features

CONTEXT = "The old ferry left the  harbour; the old ferry (again) left before sunrise."
WINDOWS = {"max_seq_length": 24, "doc_stride": 6, "max_query_length": 4}
EXAMPLES = [
    QuestionExample("a", "Who left?", CONTEXT),
    QuestionExample("empty", "Who?", " "),
    QuestionExample("b", "When?", "Before sunrise."),
]


def logits(starts, ends):
    return {"start_logits": starts, "end_logits": ends}


def candidates(*arrays):
    names = ("start_log_probs", "start_indices", "end_log_probs", "end_indices", "null_logits")
    return dict(zip(names, arrays, strict=True))


@pytest.fixture(scope="module")
def features(tiny_tokenizer):
    return span_features(EXAMPLES, tiny_tokenizer, **WINDOWS)


def decoded_by_hand(features, proposed, n_best, max_length, nothing):
    """Returns the n best texts by plain loops; `proposed` gives start, end and scores of a row."""
    answers = {}
    for number, example in enumerate(EXAMPLES):
        spans = []
        for row in np.flatnonzero(features.example_indices == number):
            begin = features.passage_starts[row]
            stop = begin + features.passage_lengths[row]
            for start, end, start_score, end_score in proposed(row):
                if not begin <= start <= end < min(stop, start + max_length):
                    continue
                if features.shows_most(row, np.array([start])).all():
                    text = example.context[
                        slice(*features.characters_at(row, start, end, example.context))
                    ]
                    spans.append((text, float(start_score), float(end_score)))
        best = {}
        for text, start, end in sorted(spans, key=lambda span: -(span[1] + span[2])):
            if len(best) < n_best:
                best.setdefault(text, (start, end))
        best = best or nothing
        total = sum(math.exp(start + end) for start, end in best.values() if start > -1e5) or 1
        answers[example.id] = [
            (text, math.exp(start + end) / total if start > -1e5 else 1.0, start, end)
            for text, (start, end) in best.items()
        ]
    return answers


def flat(nbest):
    return {id: [tuple(one.values()) for one in texts] for id, texts in nbest.items()}


def assert_same(nbest, expected):
    assert nbest.keys() == expected.keys()
    for id, texts in flat(nbest).items():
        assert [one[0] for one in texts] == [one[0] for one in expected[id]]
        received = [one[1:] for one in texts]
        np.testing.assert_allclose(received, [one[1:] for one in expected[id]], rtol=1e-9)


@pytest.mark.parametrize("n_best, max_length", [(20, 30), (6, 3), (1, 1)])
def test_version_1_decodes_as_plain_loops_do(n_best, max_length, features):
    draw = np.random.default_rng(11)
    shape = (len(features), features.max_seq_length)
    # Rounded, so that many scores are equal and their order matters.
    outputs = logits(*draw.normal(size=(2, *shape)).round(1).astype(np.float32))

    def proposed(row):
        starts, ends = outputs.values()
        best = [sorted(range(shape[1]), key=lambda at: -one[row][at]) for one in (starts, ends)]
        for start in best[0][:n_best]:
            for end in best[1][:n_best]:
                yield start, end, starts[row, start], ends[row, end]

    expected = decoded_by_hand(features, proposed, n_best, max_length, {"empty": (0.0, 0.0)})
    answers = decode(EXAMPLES, features, outputs, n_best, max_length)
    assert_same(answers.nbest, expected)
    assert answers.predictions == {id: texts[0][0] for id, texts in expected.items()}
    assert answers.null_scores is None


def test_version_2_decodes_as_plain_loops_do(features):
    draw = np.random.default_rng(12)
    windows, length = (len(features), features.max_seq_length)
    outputs = candidates(
        draw.normal(size=(windows, 5)).astype(np.float32),
        draw.permuted(np.tile(np.arange(length), (windows, 1)), axis=1)[:, :5],
        draw.normal(size=(windows, 15)).astype(np.float32),
        draw.permuted(np.tile(np.arange(length), (windows, 1)), axis=1)[:, :15],
        draw.normal(size=windows).astype(np.float32),
    )

    def proposed(row):
        starts, start_at, ends, end_at, _ = outputs.values()
        for i in range(5):
            for j in range(3 * i, 3 * i + 3):
                yield start_at[row, i], end_at[row, j], starts[row, i], ends[row, j]

    answers = decode(EXAMPLES, features, outputs, n_best=20, max_answer_length=30)
    assert_same(answers.nbest, decoded_by_hand(features, proposed, 20, 30, {"": (-1e6, -1e6)}))
    for number, example in enumerate(EXAMPLES):
        rows = features.example_indices == number
        lowest = min(outputs["null_logits"][rows].tolist(), default=1e6)
        assert answers.null_scores[example.id] == pytest.approx(lowest)


def nothing_but_cls(features, null_logits):
    windows = len(features)
    zeros = np.zeros((windows, 1), np.int64)
    return candidates(zeros - 0.5, zeros, zeros - 0.5, zeros, np.asarray(null_logits))


def test_version_2_without_spans_has_the_empty_text_and_the_least_null_score(features):
    null_logits = np.linspace(3, 4, len(features))
    answers = decode(EXAMPLES, features, nothing_but_cls(features, null_logits))
    assert answers.predictions == {"a": "", "empty": "", "b": ""}
    assert answers.nbest["a"][0]["start_log_prob"] == -1e6
    assert answers.null_scores == {"a": 3.0, "empty": 1e6, "b": 4.0}


def test_a_question_at_the_threshold_is_not_answered():
    predictions = {"a": "x", "b": "y", "c": "z"}
    null_scores = {"a": -1.5, "b": 0.5, "c": 0.25}
    assert apply_null_threshold(predictions, null_scores, 0.5) == {"a": "x", "b": "", "c": "z"}
