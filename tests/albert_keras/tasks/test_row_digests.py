"""A row is recognized by its texts alone."""

import pytest

from albert_keras.tasks.examples import (
    Answer,
    ChoiceExample,
    QuestionExample,
    TaggedExample,
    TextExample,
)
from albert_keras.tasks.row_digests import digest_rows, normalised

#: Two examples of the same row: id, label and answers differ.
SAME = [
    (TextExample("0", "A ferry", None, "yes"), TextExample("7", "A ferry")),
    (TextExample("0", "A", "ferry", 0.5), TextExample("a", "A", "ferry", 2.0)),
    (TaggedExample("0", ("A", "ferry"), ("O", "B-X")), TaggedExample("1", ("A", "ferry"))),
    (
        QuestionExample("0", "When?", "At six.", (Answer("six", 3),), False),
        QuestionExample("q", "When?", "At six.", (), True),
    ),
    (
        ChoiceExample("0", "At six.", "When?", ("at six", "at ten"), 0, "high"),
        ChoiceExample("1", "At six.", "When?", ("at ten", "at six"), 1),
    ),
]
DIFFERENT = [
    (TextExample("0", "A ferry", None, "yes"), TextExample("0", "A boat", None, "yes")),
    (TextExample("0", "A", "ferry"), TextExample("0", "ferry", "A")),
    (TextExample("0", "A", "ferry"), TextExample("0", "A ferry")),
    (TextExample("0", "A", ""), TextExample("0", "A")),
    (TaggedExample("0", ("A", "ferry"), None), TaggedExample("0", ("A ferry",), None)),
    (QuestionExample("0", "When?", "At six."), QuestionExample("0", "Where?", "At six.")),
]


@pytest.mark.parametrize("pair", SAME)
def test_neither_id_nor_label_makes_a_row(pair):
    exact, plain, count, fingerprint = digest_rows(list(pair), "f")
    assert exact[0] == exact[1] and plain[0] == plain[1] and (count, fingerprint) == (2, "f")


@pytest.mark.parametrize("pair", DIFFERENT)
def test_other_texts_are_another_row(pair):
    exact, plain, *_ = digest_rows(list(pair))
    assert exact[0] != exact[1] and plain[0] != plain[1]


@pytest.mark.parametrize("text", ["The  FERRY ﬁnds a café ", "the ferry ﬁnds\ta cafe\u0301"])
def test_a_normalised_text_has_no_case_and_single_spaces(text):
    assert normalised(text) == "the ferry finds a café"
    exact, plain, *_ = digest_rows(
        [TextExample("0", text), TextExample("0", "The ferry finds a café")]
    )
    assert plain[0] == plain[1] and exact[0] != exact[1]
