"""Answers and official scores of all kinds stay as they are, on both Keras."""

import json

import numpy as np
import pytest

from tests.differences import differences
from tests.golden.kinds import MODELS, build_model
from tests.golden.make import PATH, golden_of

GOLDEN = json.loads(PATH.read_text(encoding="utf-8"))
#: The largest difference of numbers, or of their size if that is more than 1.
TOLERANCE = 1e-4


@pytest.mark.parametrize("name", MODELS)
def test_answers_and_scores_are_golden(name, shared_data):
    model = build_model(name, GOLDEN["heads"][name])
    for kind, examples, answers, found in golden_of(name, model, shared_data):
        assert not differences(found, GOLDEN["kinds"][kind], TOLERANCE, TOLERANCE), kind
        few = {name: column[:6] for name, column in examples.columns.items()}
        _check_predictions(model.predict(few, verbose=0), answers[:6])


def _check_predictions(predicted, answers):
    """Compares what `predict` of Keras returns with named answers."""
    if isinstance(predicted, dict):
        for text, answer in zip(predicted["answer"], answers, strict=True):
            # Without any span, version 1 of the official script has the answer "empty".
            expected = "" if answer.start is None else answer.text
            assert (text.decode() if isinstance(text, bytes) else text) == expected
        return
    for row, answer in zip(np.asarray(predicted), answers, strict=True):
        if hasattr(answer, "tags"):
            expected, row = answer.probabilities, row[: len(answer.tags)].max(-1)
        elif hasattr(answer, "probabilities"):
            values = answer.probabilities
            expected = [*values.values()] if isinstance(values, dict) else values
        else:
            expected = [*answer.scores.values()] if hasattr(answer, "scores") else [answer.score]
        np.testing.assert_allclose(np.ravel(row), expected, rtol=TOLERANCE, atol=TOLERANCE)
