"""Pseudo-log-likelihoods of sentences: each token is masked and predicted from all others."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.formats.open_weights import open_weights
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.layers.cross_entropy import sparse_cross_entropy
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.tasks.features import Features
from albert_keras.tasks.pair_features import lay_out, single_texts
from albert_keras.tasks.row_predictor import RowPredictor
from albert_keras.texts.reading import given_texts
from albert_keras.training.strategy import build_strategy
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer

#: [CLS] and [SEP].
NUM_SPECIAL = 2


class TokenScore(NamedTuple):
    """A token: its `piece` of the vocabulary, and the logarithm of its probability in nats."""

    piece: str
    log_probability: float


class SentenceScore(NamedTuple):
    """Pseudo-log-likelihood of a sentence."""

    text: str
    score: float  # in nats: the sum over the tokens, without [CLS] and [SEP]
    score_per_token: float
    tokens: list[TokenScore]


class SentenceScores(NamedTuple):
    """Pseudo-log-likelihoods of N sentences; equal ones share their tokens."""

    scores: np.ndarray  # float64 [N], in nats
    ids: list[np.ndarray]  # int32 arrays, the tokens of each sentence
    log_probabilities: list[np.ndarray]  # float32 arrays, one value for each token


class EncodedSentences(NamedTuple):
    """N sentences; M are left when sentences with the same tokens are counted once."""

    ids: np.ndarray  # int32 [T], tokens of the M different sentences
    lengths: np.ndarray  # int64 [M], at least 1
    rows: np.ndarray  # int64 [N], which of the M each sentence is


def encode_sentences(texts: Sequence[str], tokenizer: Tokenizer) -> EncodedSentences:
    """Encodes sentences, so that those with the same tokens are scored once.

    Their scores are then equal exactly, whatever batches they would be in.
    """
    keys = [ids.tobytes() for ids in tokenizer.encode_batch(texts)]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    ids = [np.frombuffer(key, np.int32) for key in numbers]
    return EncodedSentences(
        ids=np.concatenate([np.zeros(0, np.int32), *ids]),
        lengths=np.array(list(map(len, ids)), np.int64),
        rows=np.array([numbers[key] for key in keys], np.int64),
    )


class MaskedSentences(Features):
    """The sequence `[CLS] s [SEP]` for each of T tokens, in which the token is masked.

    Args:
        sentences: EncodedSentences.
        tokenizer: Tokenizer.
        mask_rest_of_word: Whether the later tokens of the same word are masked, too.
    """

    def __init__(
        self, sentences: EncodedSentences, tokenizer: Tokenizer, mask_rest_of_word: bool = False
    ):
        self._ids, lengths = sentences.ids, sentences.lengths
        starts = lengths.cumsum() - lengths
        self._starts = np.repeat(starts, lengths)  # int64 [T], first token of the sentence
        self._counts = np.repeat(lengths, lengths)  # int64 [T], tokens of the sentence
        self._tokenizer = tokenizer
        tokens = np.arange(len(self._ids))
        self._ends = tokens + 1  # int64 [T], after the last masked token
        if mask_rest_of_word:
            begins_word = tokenizer.word_starts()[self._ids]
            begins_word[starts] = True
            borders = np.append(np.flatnonzero(begins_word), len(tokens))
            self._ends = borders[np.searchsorted(borders, tokens, side="right")]
        self.lengths = self._counts + NUM_SPECIAL
        self.max_seq_length = int(self.lengths.max(initial=0))
        self.dropped_tokens = np.zeros(len(tokens), np.int64)

    def batch(self, rows, length=None):
        """Lays out the sequences of some tokens; see `Features.batch`.

        Returns:
            dict of int32 [B, length] `input_ids`, `input_mask` and `segment_ids` (0), and of
            `masked_lm_positions` [B, 1] and `targets` [B], the position and the id of the token.
        """
        rows = np.asarray(rows, np.int64)
        length = self.max_seq_length if length is None else length
        starts, counts = self._starts[rows], self._counts[rows]
        batch = lay_out(single_texts(self._ids, starts, counts), self._tokenizer, length)
        first, end = rows - starts + 1, self._ends[rows] - starts + 1  # after [CLS]
        positions = np.arange(length)
        is_masked = (positions >= first[:, None]) & (positions < end[:, None])
        batch["input_ids"][is_masked] = self._tokenizer.mask_id
        batch["masked_lm_positions"] = first[:, None].astype(np.int32)
        batch["targets"] = self._ids[rows]
        return batch


class PseudoLikelihood:
    """Scores sentences with the masked-LM head of a model, in float32.

    A sentence is read as `[CLS] s [SEP]`. Sequences are sorted by length, and exist one batch at a
    time. Logits are computed at the masked token alone.

    Args:
        model: Pre-training run, export or version of it (with its `.keras` file), name of a
            shipped model, checkpoint, `.keras` file, or a model in a format that `convert` reads.
        mask_rest_of_word: Whether the later tokens of the word of a token are masked together with
            it. Otherwise they give away the first tokens of long, rare words, whose scores are
            then too high.
        step: Checkpoint of a run, or "best". None takes the newest one.
        batch_size: Masked sequences per device and call of the model.
        strategy: See `build_strategy`.

    Attributes:
        step: int or None. Number of training steps, if it is known.
        tokenizer: Tokenizer.
        max_tokens: int. Tokens of the longest sentence that can be scored: one that the model was
            trained to read, if that is known, or else that it has positions for.

    Raises:
        InputError: If there is no such model, or it has no masked-LM head.

    Source:
        Salazar et al. (2020): Masked language model scoring (https://arxiv.org/abs/1910.14659);
        for `mask_rest_of_word`, Kauf & Ivanova (2023): A better way to do masked language model
        scoring (https://arxiv.org/abs/2305.10588), "PLL-word-l2r".
    """

    def __init__(
        self,
        model: str | Path,
        mask_rest_of_word: bool = False,
        step: int | str | None = None,
        batch_size: int = 64,
        strategy: str = "auto",
    ):
        weights = open_weights(model, step)
        if weights.task is not None or "masked_lm" not in weights.heads:
            heads = f"heads {', '.join(weights.heads) or 'none'}"
            raise InputError(
                f"`{model}` must be a pre-trained model with a masked-LM head, which scores "
                f"sentences. Received: {heads if weights.task is None else 'a fine-tuned model'}."
            )
        self.step, self.tokenizer = weights.step, weights.tokenizer
        self.max_tokens = _trained_length(weights) - NUM_SPECIAL
        self._mask_rest_of_word = mask_rest_of_word
        built = build_strategy(strategy)
        with built.scope():
            self._model = AlbertForPretraining.from_preset(
                weights, sentence_head=False, dtype="float32"
            )
        # Rows are sorted by length, and a batch is padded to its longest row.
        self._predictor = RowPredictor(
            built,
            self._outputs,
            batch_size,
            multiple=1,
            noun="masked sequences",
            config=weights.albert_config,
        )

    def problem(self, num_tokens: int) -> str | None:
        """Returns why a sentence of this length has no score ("must have ..."), or None."""
        if 0 < num_tokens <= self.max_tokens:
            return None
        return (
            f"must have from 1 to {self.max_tokens} tokens of the vocabulary, the length that the "
            f"model reads without [CLS] and [SEP]. Received: {num_tokens}."
        )

    def score(self, sentences: EncodedSentences) -> SentenceScores:
        """Scores N sentences, at least one, none of them with a length that is a `problem`."""
        features = MaskedSentences(sentences, self.tokenizer, self._mask_rest_of_word)
        found = self._predictor.predict(features)["log_probabilities"]
        ends = sentences.lengths.cumsum()
        totals = np.add.reduceat(found.astype(np.float64), ends - sentences.lengths)
        if not np.isfinite(totals).all():
            raise InputError("Scores must be finite. The weights of the model are damaged.")
        ids, values = (np.split(array, ends[:-1]) for array in (sentences.ids, found))
        rows = sentences.rows
        return SentenceScores(
            totals[rows], [ids[row] for row in rows], [values[row] for row in rows]
        )

    def score_texts(self, texts: Iterable[str]) -> list[SentenceScore]:
        """Scores texts; see `score_sentences` for the result and errors."""
        texts = checked_texts(texts)
        sentences = encode_sentences(texts, self.tokenizer)
        for text, length in zip(texts, sentences.lengths[sentences.rows], strict=True):
            problem = self.problem(int(length))
            if problem:
                raise InputError(f"The text `{text:.40}` {problem}")
        scores = []
        for text, score, ids, values in zip(texts, *self.score(sentences), strict=True):
            pieces = map(self.tokenizer.piece_of, ids.tolist())
            tokens = [TokenScore(*each) for each in zip(pieces, values.tolist(), strict=True)]
            scores.append(SentenceScore(text, float(score), float(score) / len(ids), tokens))
        return scores

    def _outputs(self, inputs, training):
        scores = self._model(inputs, training=training, only_predictions=True)["masked_lm_scores"]
        bias = self._model.masked_lm_head.output_bias
        losses, _ = sparse_cross_entropy(scores[:, 0], bias, inputs["targets"])
        return {"log_probabilities": -losses}


def score_sentences(
    model: str | Path,
    texts: Iterable[str],
    mask_rest_of_word: bool = False,
    step: int | str | None = None,
    batch_size: int = 64,
    strategy: str = "auto",
) -> list[SentenceScore]:
    """Computes the pseudo-log-likelihoods of sentences.

    Args:
        model, mask_rest_of_word, step, batch_size, strategy: See `PseudoLikelihood`.
        texts: iterable of str.

    Returns:
        list of SentenceScore, in the order of the texts.

    Raises:
        InputError: If the model or a text cannot be used. A text that is longer than the model can
            read is not truncated.

    Example:
        score_sentences("runs/books", ["The cats sleep."])[0].score  # in nats, below 0
    """
    sentences = checked_texts(texts)
    scorer = PseudoLikelihood(model, mask_rest_of_word, step, batch_size, strategy)
    return scorer.score_texts(sentences)


def checked_texts(texts: Iterable[str]) -> list[str]:
    """Returns texts to score as a list; InputError if one is blank or no text, or there is none."""
    sentences = [text.text for text in given_texts(texts)]
    if not sentences:
        raise InputError("There must be at least one text to score. Received: none.")
    return sentences


def _trained_length(weights: OpenedModel) -> int:
    """Returns the tokens of the longest sequence that a model has learnt to read."""
    if not weights.albert_config.position_rows:
        # Rotary positions may have replaced a table, whose training they do not continue.
        weights = dataclasses.replace(weights, origin_positions=0)
    return weights.trained_positions
