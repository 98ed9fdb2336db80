import math

import numpy as np
import pytest

from albert_keras.tasks.examples import QuestionExample
from albert_keras.tasks.spans.task import SpanOrNoneTask, SpanTask
from albert_keras.tasks.spans.windows import span_features
from albert_keras.tasks.task_config import TaskConfig

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


def assert_same(decoded, expected):
    for one, texts in zip(decoded, expected.values(), strict=True):
        received = [tuple(text.values()) for text in one.nbest]
        assert [text[0] for text in received] == [text[0] for text in texts]
        numbers = [text[1:] for text in received]
        np.testing.assert_allclose(numbers, [text[1:] for text in texts], rtol=1e-9)


@pytest.mark.parametrize("n_best, max_length", [(20, 30), (6, 3)])
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
    task = SpanTask(TaskConfig(name="squad1", n_best=n_best, max_answer_length=max_length))
    decoded = task.decode(EXAMPLES, features, outputs)
    assert_same(decoded, expected)
    assert [one.null_score for one in decoded] == [None] * 3


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

    decoded = SpanOrNoneTask(TaskConfig(name="squad2")).decode(EXAMPLES, features, outputs)
    assert_same(decoded, decoded_by_hand(features, proposed, 20, 30, {"": (-1e6, -1e6)}))
    for number, one in enumerate(decoded):
        rows = features.example_indices == number
        lowest = min(outputs["null_logits"][rows].tolist(), default=1e6)
        assert one.null_score == pytest.approx(lowest)
