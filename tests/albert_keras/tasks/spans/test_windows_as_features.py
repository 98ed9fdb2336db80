"""Windows as rows for a model."""

import dataclasses

import numpy as np
import pytest

from albert_keras.tasks.examples import Answer, QuestionExample
from albert_keras.tasks.spans.windows import (
    SquadWindowConfig,
    span_features,
)
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.offsets import AlignedPieces

LONG = "The old ferry left the harbour before sunrise, and nobody (but me) wondered why it left."
SHORT = "Rain had washed it."
WINDOWS = SquadWindowConfig(max_seq_length=24, doc_stride=6, max_query_length=6)
EXAMPLES = [
    QuestionExample("a", "Who left?", LONG, (Answer("ferry", 8),), False),
    QuestionExample("b", "What had washed it?", SHORT, (Answer("Rain", 0),), False),
    QuestionExample("c", "Who sang?", LONG, (), True),
    QuestionExample("d", "Who?", " ", (), True),
]


def test_a_batch_is_cut_to_a_length(tiny_tokenizer):
    features = span_features(EXAMPLES, tiny_tokenizer, WINDOWS, True)
    row = int(np.argmin(features.lengths))
    longest = int(features.lengths[row])
    assert features.max_seq_length == 24 and longest < 24 == features.lengths.max()
    whole, cut = features.batch(np.array([row])), features.batch(np.array([row]), longest)
    assert cut["input_ids"][0, -1] == tiny_tokenizer.sep_id
    for name in ("input_ids", "input_mask", "segment_ids", "p_mask"):
        assert cut[name].shape == (1, longest) and cut[name].dtype == np.int32
        np.testing.assert_array_equal(cut[name], whole[name][:, :longest])
    assert whole["input_mask"].sum() == cut["input_mask"].sum() == longest
    for length in (longest - 1, 25):
        with pytest.raises(InputError, match=rf"row \({longest}\) .*\(24\)\. Received: {length}"):
            features.batch(np.array([row]), length)


def test_targets_are_there_for_training_only(tiny_tokenizer):
    trained = span_features(EXAMPLES, tiny_tokenizer, WINDOWS, True)
    rows = np.array([1, 0, len(trained) - 1])
    batch = trained.batch(rows)
    names = ("start_positions", "end_positions", "is_impossible")
    for name, array in zip(names, ("starts", "ends", "is_impossible"), strict=True):
        np.testing.assert_array_equal(batch[name], getattr(trained, array)[rows])
        assert batch[name].dtype == np.int32
    asked = span_features(EXAMPLES, tiny_tokenizer, WINDOWS)
    assert set(asked.batch(rows)) == {"input_ids", "input_mask", "segment_ids", "p_mask"}


def test_space_around_a_text_is_no_part_of_it(tiny_tokenizer):
    context = " \t old ferry \n"
    windows = span_features([QuestionExample("a", "Who?", context)], tiny_tokenizer, WINDOWS)
    (passage,) = windows.passages
    wide = AlignedPieces(passage.ids, passage.starts * 0, passage.ends * 0 + len(context))
    windows = dataclasses.replace(windows, passages=(wide,))
    first = int(windows.passage_starts[0])
    assert windows.characters_at(0, first, first, context) == (3, 12)
    assert context[3:12] == "old ferry"
