import logging

import numpy as np
import pytest

from albert_keras.tasks.examples import Answer, QuestionExample
from albert_keras.tasks.spans.files import read_questions
from albert_keras.tasks.spans.scores import normalize_answer
from albert_keras.tasks.spans.windows import lay_out_windows, max_context, span_features
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.offsets import AlignedPieces
from data_pipeline.tokenizers.tokenization import Tokenizer

CONTEXT = "The old ferry left the harbour before  sunrise, and nobody (but me) wondered why."
WINDOWS = {"max_seq_length": 24, "doc_stride": 6, "max_query_length": 8}


def question(id="q", text=None, context=CONTEXT, is_impossible=None, asked="Who wondered?"):
    answers = () if text is None else (Answer(text, context.index(text)),)
    return QuestionExample(id, asked, context, answers, is_impossible)


def windows_by_hand(total, budget, stride):
    spans, start = [], 0
    while start < total:
        length = min(total - start, budget)
        spans.append((start, length))
        if start + length == total:
            break
        start += min(length, stride)
    return spans


def max_context_by_hand(spans, piece):
    best = None
    for number, (start, length) in enumerate(spans):
        if start <= piece < start + length:
            score = min(piece - start, start + length - 1 - piece) + 0.01 * length
            if best is None or score > best[0]:
                best = score, number
    return best[1]


def test_windows_and_their_max_context_are_those_of_the_original():
    draw = np.random.default_rng(3)
    for _ in range(200):
        total, budget, stride = (int(draw.integers(*one)) for one in ((0, 150), (1, 60), (1, 70)))
        offsets, lengths = lay_out_windows(total, budget, stride)
        spans = windows_by_hand(total, budget, stride)
        assert list(zip(offsets.tolist(), lengths.tolist(), strict=True)) == spans
        expected = [max_context_by_hand(spans, piece) for piece in range(total)]
        assert max_context(offsets, lengths).tolist() == expected


def test_every_place_of_every_window_is_laid_out_as_in_the_original(tiny_tokenizer):
    features = span_features([question()], tiny_tokenizer, **WINDOWS)
    query = tiny_tokenizer.encode("Who wondered?")[:8]
    passage = tiny_tokenizer.encode(CONTEXT)
    spans = windows_by_hand(len(passage), 24 - len(query) - 3, 6)
    assert len(features) == len(spans) > 2
    inputs = features.batch(np.arange(len(features)))
    for row, (start, length) in enumerate(spans):
        shown = passage[start : start + length]
        padding = [0] * (24 - len(query) - length - 3)
        cls, sep = [tiny_tokenizer.cls_id], [tiny_tokenizer.sep_id]
        ids = cls + query + sep + shown + sep + padding
        best = [max_context_by_hand(spans, start + place) == row for place in range(length)]
        expected = {
            "input_ids": ids,
            "input_mask": [1] * (24 - len(padding)) + padding,
            "segment_ids": [0] * (len(query) + 2) + [1] * (length + 1) + padding,
            "p_mask": [0] + [1] * (len(query) + 1) + [0] * length + [1] * (1 + len(padding)),
        }
        assert {name: array[row].tolist() for name, array in inputs.items()} == expected
        outside = [False] * (len(query) + 2), [False] * (len(padding) + 1)
        assert features.shows_most(row, np.arange(24)).tolist() == outside[0] + best + outside[1]
    assert all(array.dtype == np.int32 for array in inputs.values())


@pytest.mark.parametrize("answer", ["harbour before  sunrise", "(but me)", "The"])
def test_an_answer_is_placed_where_it_is_read_again(answer, tiny_tokenizer):
    config = {"max_seq_length": 60, "doc_stride": 10, "max_query_length": 8}
    features = span_features([question("1", answer)], tiny_tokenizer, **config, training=True)
    targets = features.batch(np.arange(len(features)))
    found = 0
    for row, (start, end) in enumerate(features.spans):
        if end:
            found += 1
            assert CONTEXT[slice(*features.characters_at(row, start, end, CONTEXT))] == answer
            assert not targets["p_mask"][row, start : end + 1].any()
        assert targets["is_impossible"][row] == (end == 0)
    assert found


def test_training_wants_one_answer_that_leaves_something(tiny_tokenizer):
    two = question("7", "ferry")._replace(answers=(Answer("The", 0), Answer("old", 4)))
    for example, count in ((two, 2), (question("7"), 0)):
        with pytest.raises(InputError, match=f"'7' must have exactly one answer.*: {count}"):
            span_features([example], tiny_tokenizer, **WINDOWS, training=True)
    lost = question("8", context="\x07 why")._replace(answers=(Answer("\x07", 0),))
    with pytest.raises(InputError, match="'8' must contain text that remains after"):
        span_features([lost], tiny_tokenizer, **WINDOWS, training=True)


def test_an_empty_passage_has_no_window_and_is_logged(tiny_tokenizer, caplog):
    examples = [question("1", context="  "), question("2"), question("3", asked="")]
    with caplog.at_level(logging.WARNING):
        features = span_features(examples, tiny_tokenizer, **WINDOWS)
    assert set(features.example_indices) == {1, 2}
    last = features.batch([len(features) - 1])["input_ids"][0]
    assert last[1] == tiny_tokenizer.sep_id  # an empty question is no problem
    assert "1 of 3 questions are about an empty passage" in caplog.text
    with pytest.raises(InputError, match="at least one question"):
        span_features([], tiny_tokenizer, **WINDOWS)
    with pytest.raises(InputError, match="1 questions, all about empty passages"):
        span_features(examples[:1], tiny_tokenizer, **WINDOWS)


@pytest.mark.parametrize(
    "name, part",
    [
        ("dev-v1.1.json", slice(1000, 1800)),
        pytest.param("train-v1.1.slice.json", slice(None), marks=pytest.mark.slow),
        pytest.param("train-v2.0.slice.json", slice(None), marks=pytest.mark.slow),
    ],
)
def test_gold_answers_of_real_questions_are_read_again(name, part, official_model, shared_data):
    tokenizer = Tokenizer.load(official_model)
    examples = [
        example._replace(answers=example.answers[:1])
        for example in read_questions(shared_data / "squad" / name)[part]
        if example.answers
    ]
    features = span_features(examples, tokenizer, 384, 128, 64, training=True)
    right = set()
    for row in np.flatnonzero(features.spans[:, 1]):
        number = int(features.example_indices[row])
        start, end = features.spans[row]
        context = examples[number].context
        text = context[slice(*features.characters_at(row, start, end, context))]
        if normalize_answer(text) == normalize_answer(examples[number].answers[0].text):
            right.add(number)
    assert len(right) >= 0.99 * len(examples)


def test_space_around_a_text_is_no_part_of_it(tiny_tokenizer):
    context = " \t old ferry \n"
    windows = span_features([QuestionExample("a", "Who?", context)], tiny_tokenizer, **WINDOWS)
    (passage,) = windows.passages
    wide = AlignedPieces(passage.ids, passage.starts * 0, passage.ends * 0 + len(context))
    windows.passages = [wide]
    first = int(windows.passage_starts[0])
    assert windows.characters_at(0, first, first, context) == (3, 12)
    assert context[3:12] == "old ferry"
