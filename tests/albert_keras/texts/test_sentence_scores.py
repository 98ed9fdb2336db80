"""Pseudo-log-likelihoods, compared with a loop over the tokens of each sentence."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from albert_keras import score_sentences
from albert_keras.formats.open_weights import open_weights
from albert_keras.runs.run import Run
from albert_keras.texts.sentence_scores import PseudoLikelihood
from data_pipeline.errors import InputError

TEXTS = [
    "The old ferry left the harbour.",
    "Rain.",
    "Seven geese crossed the frozen lake in 1987.",
    "Incomprehensibilities, nevertheless!",
]


def log_probabilities(model, tokenizer, text, rest_of_word):
    """Masks one token after the other, in one sequence without padding, with all logits."""
    ids = [tokenizer.cls_id, *tokenizer.encode(text), tokenizer.sep_id]
    begins = tokenizer.word_starts()
    found = []
    for position in range(1, len(ids) - 1):
        masked = ids.copy()
        masked[position] = tokenizer.mask_id
        later = position + 1
        while rest_of_word and later < len(ids) - 1 and not begins[ids[later]]:
            masked[later] = tokenizer.mask_id
            later += 1
        positions = tf.constant([[position]])
        inputs = {"input_ids": tf.constant([masked]), "masked_lm_positions": positions}
        logits = model(inputs)["masked_lm_logits"].numpy()[0, 0].astype(np.float64)
        found.append(logits[ids[position]] - np.log(np.sum(np.exp(logits))))
    return found


@pytest.fixture(scope="module")
def scorer(tiny_run):
    return PseudoLikelihood(tiny_run, batch_size=5)


def test_scores_equal_those_of_a_loop(tiny_run, scorer, pretrained, tiny_tokenizer):
    words = PseudoLikelihood(tiny_run, mask_rest_of_word=True)
    for one, texts in ((scorer, TEXTS[:2]), (words, TEXTS[3:])):
        for text, score in zip(texts, one.score_texts(texts), strict=True):
            expected = log_probabilities(pretrained, tiny_tokenizer, text, one is words)
            values = [token.log_probability for token in score.tokens]
            np.testing.assert_allclose(values, expected, atol=1e-4)
            assert score.text == text
            assert score.score == pytest.approx(sum(expected), abs=1e-3)
            assert score.score_per_token == pytest.approx(np.mean(expected), abs=1e-4)
            pieces = map(tiny_tokenizer.piece_of, tiny_tokenizer.encode(text))
            assert [token.piece for token in score.tokens] == list(pieces)


def test_sentences_with_the_same_tokens_have_exactly_the_same_score(scorer):
    texts = [TEXTS[0], *TEXTS[1:], TEXTS[0].upper()]  # the vocabulary is of lower case
    scores = [one.score for one in scorer.score_texts(texts)]
    assert scores[0] == scores[-1] and len(set(scores)) == 4


@pytest.mark.slow
def test_any_checkpoint_of_a_run_and_other_models(tiny_run, pretrained, tiny_tokenizer, tmp_path):
    first = score_sentences(tiny_run, TEXTS[:1], step=5)[0].score
    expected = log_probabilities(Run.open(tiny_run).load_model(5), tiny_tokenizer, TEXTS[0], False)
    assert first == pytest.approx(sum(expected), abs=1e-3)
    last = score_sentences(tiny_run, TEXTS[:1])[0].score
    assert abs(first - last) > 0.01
    prefix = Run.open(tiny_run).checkpoints.prefix(12)
    assert score_sentences(prefix, TEXTS[:1])[0].score == pytest.approx(last, abs=1e-4)
    pretrained.save(tmp_path / "model.keras")
    tiny_tokenizer.save(tmp_path / "tokenizer")
    found = score_sentences(tmp_path / "model.keras", TEXTS[:1])[0].score
    assert found == pytest.approx(last, abs=1e-4)


def test_the_longest_sentence_is_that_of_the_training(scorer):
    assert scorer.max_tokens == 30  # of 32 in training, not of the 64 positions
    assert scorer.problem(30) is None
    with pytest.raises(InputError, match="from 1 to 30 tokens.* Received: 117"):
        scorer.score_texts(["Rain.", "Seven geese crossed the frozen lake " * 9])


def test_an_earlier_training_counts_if_its_table_of_positions_is_kept(tiny_run, monkeypatch):
    continued = dataclasses.replace(open_weights(tiny_run), origin_positions=48)
    for weights, tokens in ((continued, 46), (continued.with_rotary_positions(), 30)):
        monkeypatch.setattr(f"{PseudoLikelihood.__module__}.open_weights", lambda *_, w=weights: w)
        scorer = PseudoLikelihood(tiny_run)
        assert scorer.max_tokens == tokens
        assert scorer.problem(tokens) is None and scorer.problem(tokens + 1)


@pytest.mark.parametrize(
    "texts, settings, message",
    [
        ([], {}, "at least one text to score"),
        (["Rain."], {"batch_size": 0}, "`batch_size` must be at least 1"),
    ],
)
def test_wrong_input_is_named(tiny_run, texts, settings, message):
    with pytest.raises(InputError, match=message):
        score_sentences(tiny_run, texts, **settings)


def test_a_model_without_masked_lm_head_is_refused(pretrained, tiny_tokenizer, tmp_path):
    pretrained.encoder.save(tmp_path / "encoder.keras")
    tiny_tokenizer.save(tmp_path / "tokenizer")
    with pytest.raises(InputError, match="must be a pre-trained model with a masked-LM head"):
        score_sentences(tmp_path / "encoder.keras", ["Rain."])
