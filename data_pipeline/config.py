"""Configuration of the pre-training data."""

import math
from typing import Annotated, Literal

from pydantic import Field

from data_pipeline.settings import Rule, Settings

Probability = Annotated[float, Field(ge=0, le=1)]


class MaskingConfig(Settings):
    """How pieces are hidden for the masked language model.

    Attributes:
        masked_lm_prob: float. Share of the pieces of a sequence to predict.
        max_ngram: int. Longest run of words masked together, N; p(n) is proportional to 1/n.
        favor_shorter_ngram: bool. False reverses the distribution of n.
        word_start: str. Which pieces open a word: "unicode" (right for any script), or
            "reference" (google-research/albert's rule, which knows a-z only).

    Source:
        ALBERT, section 4.1 (https://arxiv.org/abs/1909.11942); 80/10/10 as in BERT.
    """

    masked_lm_prob: Probability = 0.15
    max_ngram: int = Field(3, ge=1, le=10)
    favor_shorter_ngram: bool = True
    word_start: Literal["unicode", "reference"] = "unicode"


class PretrainingDataConfig(Settings):
    """What turns a corpus into pre-training records; all of it is stored beside the records.

    Attributes:
        max_seq_length: int. Pieces per record, [CLS] and [SEP] included, S.
        max_predictions_per_seq: int or None. Masked pieces per record at most, P. None takes
            what `masking.masked_lm_prob` asks for, ceil(0.15 S); google-research/albert has 20.
        copies: int. Passes over the corpus, each cut and masked anew (`dupe_factor`).
        short_seq_prob: float. Share of sequences aimed at a random shorter length.
        objective: str. "sop": the two segments in order or swapped; "nsp": the second segment
            follows or comes from another document.
        single_sentence_policy: str. A stretch of one sentence has no second segment: "split" it
            at a word start, "skip" it, or take "nsp", a random second segment with label 1, as
            google-research/albert does.
        language: str. Code of the language, for sentence splitting.
        splitter: str. How documents are split into sentences, see `sentences.py`.
        num_shards: int or None. Record files. None decides by the size of the corpus.
        seed: int.
        masking: MaskingConfig.
    """

    max_seq_length: int = Field(512, ge=8)
    max_predictions_per_seq: int | None = Field(None, ge=1)
    copies: int = Field(1, ge=1)
    short_seq_prob: Probability = 0.1
    objective: Literal["sop", "nsp"] = "sop"
    single_sentence_policy: Literal["split", "skip", "nsp"] = "split"
    language: str = "en"
    splitter: str = "sentencex"
    num_shards: int | None = Field(None, ge=1)
    seed: int = Field(12345, ge=0)
    masking: MaskingConfig = MaskingConfig()

    rules = (
        Rule(
            ("max_predictions_per_seq", "max_seq_length"),
            lambda predictions, length: predictions is None or predictions <= length - 3,
            "should leave room for [CLS] and [SEP] in `max_seq_length`",
        ),
    )

    @property
    def num_predictions(self):
        """int. `max_predictions_per_seq`, or the number it stands for, P."""
        wanted = math.ceil(self.max_seq_length * self.masking.masked_lm_prob)
        return self.max_predictions_per_seq or max(1, wanted)

    @property
    def max_num_tokens(self):
        """int. Pieces of text in a record: all but [CLS] and two [SEP]."""
        return self.max_seq_length - 3
