"""Tracked offsets against the original's way to find them: a longest common subsequence."""

import collections

import pytest

from albert_keras.tasks.spans.files import read_questions
from data_pipeline.tokenizers.cleanup import clean_up
from data_pipeline.tokenizers.offsets import TextAligner
from data_pipeline.tokenizers.tokenization import Tokenizer


def longest_common_subsequence(raw, written, band):
    """Returns its length, and two maps between the places: None where there is no partner."""
    length, step = collections.defaultdict(int), {}
    for i in range(len(raw)):
        for j in range(max(0, i - band), min(len(written), i + band)):
            length[i, j], step[i, j] = length[i - 1, j], (1, 0)
            if length[i, j - 1] > length[i, j]:
                length[i, j], step[i, j] = length[i, j - 1], (0, 1)
            if raw[i] == written[j] and length[i - 1, j - 1] + 1 > length[i, j]:
                length[i, j], step[i, j] = length[i - 1, j - 1] + 1, (1, 1)
    to_written, to_raw = [None] * len(raw), [None] * len(written)
    i, j = len(raw) - 1, len(written) - 1
    while (i, j) in step:
        if step[i, j] == (1, 1):
            to_written[i], to_raw[j] = j, i
        i, j = i - step[i, j][0], j - step[i, j][1]
    return length[len(raw) - 1, len(written) - 1], to_written, to_raw


def filled(places, place, is_start, target_length=None):
    """Returns what a place is mapped to; beside a gap, what its neighbours leave."""
    if places[place] is not None:
        return places[place]
    left = next((one for one in reversed(places[:place]) if one is not None), None)
    right = next((one for one in places[place:] if one is not None), None)
    if left is None:
        return (0 if is_start else right - 1) if right >= 1 else right
    if right is None:
        if target_length is not None and left < target_length - 1:
            return left + 1 if is_start else target_length - 1
        return left
    has_gap = right > left + 1
    if is_start:
        return left + 1 if has_gap else right
    return right - 1 if has_gap else left


class Alignment:
    """Pieces of a text with the characters that the original finds for them."""

    def __init__(self, text, tokenizer):
        pieces = tokenizer.pieces(text)
        written = "".join(pieces).replace("▁", " ")
        self.piece_at = [number for number, piece in enumerate(pieces) for _ in piece]
        raw = [" " if one.isspace() else clean_up(one) for one in text]
        band = abs(len(raw) - len(written)) + 5
        for _ in range(2):
            matched, self.to_written, to_raw = longest_common_subsequence(raw, written, band)
            if matched > 0.8 * len(raw):
                break
            band *= 2
        self.is_dropped = matched < 0.8 * len(raw)
        self.spans = []
        begin = 0
        for piece in pieces:
            end = begin + len(piece)
            start = filled(to_raw, begin, True, len(raw))
            self.spans.append((start, filled(to_raw, end - 1, False, len(raw)) + 1))
            begin = end

    def pieces_of(self, start, end):
        """Returns the first and the last piece of an answer."""
        first = filled(self.to_written, start, True)
        last = filled(self.to_written, end - 1, False)
        return self.piece_at[first], self.piece_at[last]


TEXTS = (
    "The Norman dynasty had a major  impact on medieval Europe.",
    '"Quotes" (and brackets), in 1999, the 12,000 £ of Café Zoë\tcost 50–60 €!',
    "Straße, Ångström and naïve coöperation; ＡＢＣ of full width.",
)


@pytest.fixture(scope="module")
def official(official_model):
    return Tokenizer.load(official_model)


@pytest.mark.parametrize("text", TEXTS)
def test_both_find_the_same_text_for_every_piece_and_the_same_pieces_for_words(official, text):
    theirs, ours = Alignment(text, official), TextAligner(official).align(text)
    assert not theirs.is_dropped
    for piece, (start, end) in enumerate(theirs.spans):
        if ours.starts[piece] < ours.ends[piece]:  # not the space that is put in front
            assert text[start:end].strip() == text[ours.starts[piece] : ours.ends[piece]].strip()
    position = 0
    for word in text.split():
        start = text.index(word, position)
        position = start + len(word)
        assert ours.covering(start, position) == theirs.pieces_of(start, position)


def test_the_longest_common_subsequence_drops_what_changes_much_and_offsets_do_not(official):
    text = "½ ¼ ¾ ½ ¼ ¾ ﷺ ﷺ ½½½"
    assert Alignment(text, official).is_dropped
    ours = TextAligner(official).align(text)
    first, last = ours.covering(16, 19)
    assert text[ours.starts[first] : ours.ends[last]] == "½½½"


def test_both_find_the_same_pieces_for_answers_of_real_questions(official, shared_data):
    answers = collections.defaultdict(set)
    for example in read_questions(shared_data / "squad" / "dev-v1.1.json"):
        for answer in example.answers:
            answers[example.context].add((answer.start, answer.start + len(answer.text)))
    aligner = TextAligner(official)
    for context in list(answers)[::60]:
        theirs, ours = Alignment(context, official), aligner.align(context)
        for span in answers[context]:
            assert ours.covering(*span) == theirs.pieces_of(*span)
