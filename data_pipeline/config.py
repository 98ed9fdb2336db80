"""Configuration of the pre-training data."""

import math
from typing import Annotated, Literal

from pydantic import Field

from data_pipeline.errors import InputError
from data_pipeline.settings import Rule, Settings, did_you_mean

Probability = Annotated[float, Field(ge=0, le=1)]


class MaskingConfig(Settings):
    """How pieces are hidden for the masked language model.

    Attributes:
        masked_lm_prob: float. Share of the pieces of a sequence to predict.
        max_ngram: int. Longest run of words masked together, N; p(n) is proportional to 1/n.
        favor_shorter_ngram: bool. False reverses the distribution of n.
        word_start: str. Which pieces open a word: "unicode" (right for any script), or
            "reference" (google-research/albert's rule, which knows a-z only).
        random_pieces: str. What may stand in for a hidden piece: "ordinary" ones, or "all", special
            ones too, as in google-research/albert.

    Source:
        ALBERT, section 4.1 (https://arxiv.org/abs/1909.11942); 80/10/10 as in BERT.
    """

    masked_lm_prob: Probability = 0.15
    max_ngram: int = Field(3, ge=1, le=10)
    favor_shorter_ngram: bool = True
    word_start: Literal["unicode", "reference"] = "unicode"
    random_pieces: Literal["ordinary", "all"] = "ordinary"


#: Where a reader may take masks from; "auto" takes those in the records if there are any.
MASKS = ("auto", "static", "dynamic")

#: Formats whose records hold one segment, and so have no order to predict.
SINGLE_SEGMENT_FORMATS = ("full-sentences", "doc-sentences")


class PretrainingDataConfig(Settings):
    """What turns a corpus into pre-training records; all of it is stored beside the records.

    Attributes:
        max_seq_length: int. Pieces per record, [CLS] and [SEP] included, S.
        max_predictions_per_seq: int or None. Masked pieces per record at most, P. None takes
            what `masking.masked_lm_prob` asks for, ceil(0.15 S); google-research/albert has 20.
        copies: int. Passes over the corpus, each cut and masked anew (`dupe_factor`).
        input_format: str. "segment-pair": two runs of sentences (ALBERT, BERT); "sentence-pair":
            two single sentences; "full-sentences": one run of sentences that goes on across
            documents, [SEP] between them; "doc-sentences": one run within a document (RoBERTa,
            https://arxiv.org/abs/1907.11692, section 4.2).
        objective: str or None. "sop": the two segments in order or swapped; "nsp": the second
            segment follows or comes from another document; "none": always in order. None is
            "sop" for pairs and "none" for formats of one segment, which take no other.
        short_seq_prob: float. Share of sequences aimed at a random shorter length.
        short_sequences: str. Who draws that: each "stretch" of sentences, or once each "document"
            and copy, as google-research/albert does.
        single_sentence_policy: str. A stretch of one sentence has no second segment: "split" it
            at a word start, "skip" it, or take "nsp", a random second segment with label 1, as
            google-research/albert does.
        static_masks: bool. Whether masks are written into the records. Without them records hold
            the text as it is, and a reader draws masks anew in each epoch.
        language: str. Code of the language, for sentence splitting.
        splitter: str. How documents are split into sentences, see `sentences.py`.
        num_shards: int or None. Record files. None decides by the size of the corpus.
        seed: int.
        masking: MaskingConfig.
    """

    max_seq_length: int = Field(512, ge=8)
    max_predictions_per_seq: int | None = Field(None, ge=1)
    copies: int = Field(1, ge=1)
    input_format: Literal["segment-pair", "sentence-pair", "full-sentences", "doc-sentences"] = (
        "segment-pair"
    )
    objective: Literal["sop", "nsp", "none"] | None = None
    short_seq_prob: Probability = 0.1
    short_sequences: Literal["stretch", "document"] = "stretch"
    single_sentence_policy: Literal["split", "skip", "nsp"] = "split"
    static_masks: bool = True
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
        Rule(
            ("objective", "input_format"),
            lambda objective, format: (
                objective in (None, "none") or format not in SINGLE_SEGMENT_FORMATS
            ),
            "should be `none` for a format of one segment",
        ),
        Rule(
            ("single_sentence_policy", "objective"),
            lambda policy, objective: (policy, objective) != ("nsp", "none"),
            "should not add a random second segment where there is no label for it",
        ),
    )

    @classmethod
    def preset(cls, name, **changes):
        """Makes the configuration of a published recipe.

        Args:
            name: str. One of `PRESETS`.
            **changes: Settings that differ; `masking` may be a dict of those that do.

        Returns:
            PretrainingDataConfig.

        Raises:
            InputError: If there is no such preset, or a setting is wrong.
        """
        if name not in PRESETS:
            raise InputError(f"`preset={name}` is unknown{did_you_mean(name, PRESETS)}")
        values = PRESETS[name] | changes
        masking = changes.get("masking", {})
        if isinstance(masking, dict):
            values["masking"] = PRESETS[name].get("masking", {}) | masking
        return cls(**values)

    @property
    def num_predictions(self):
        """int. `max_predictions_per_seq`, or the number it stands for, P."""
        wanted = math.ceil(self.max_seq_length * self.masking.masked_lm_prob)
        return self.max_predictions_per_seq or max(1, wanted)

    @property
    def max_num_tokens(self):
        """int. Pieces of text in a record: all but [CLS] and one [SEP] or two."""
        return self.max_seq_length - (2 if self.input_format in SINGLE_SEGMENT_FORMATS else 3)

    @property
    def label_objective(self):
        """str. `objective`, or what it stands for: "sop", "nsp" or "none"."""
        return self.objective or ("none" if self.input_format in SINGLE_SEGMENT_FORMATS else "sop")


#: Published recipes. "reference" is google-research/albert as its flags default, with two repairs
#: that no switch undoes: every draw is seeded, and no n-gram crosses [SEP].
PRESETS = {
    "albert": {},
    "reference": {
        "max_predictions_per_seq": 20,
        "copies": 40,
        "short_sequences": "document",
        "single_sentence_policy": "nsp",
        "masking": {"word_start": "reference", "random_pieces": "all"},
    },
    "bert": {
        "max_seq_length": 128,
        "max_predictions_per_seq": 20,
        "copies": 10,
        "objective": "nsp",
        "short_sequences": "document",
        "masking": {"max_ngram": 1},
    },
    "roberta": {
        "input_format": "full-sentences",
        "short_seq_prob": 0,
        "static_masks": False,
        "masking": {"max_ngram": 1},
    },
}
