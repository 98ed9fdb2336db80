"""Configuration of the pre-training data."""

import math
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from data_pipeline.errors import InputError
from data_pipeline.limits import MAX_LONG_INTEGER
from data_pipeline.settings import Rule, Settings, did_you_mean, option, setting

Probability = Annotated[float, Field(ge=0, le=1)]
WordSplit = Literal["characters", "punctuation", "elisions", "contractions", "white_space"]


class MaskingConfig(Settings):
    """Masking for the masked language model.

    Source:
        ALBERT, section 4.1 (https://arxiv.org/abs/1909.11942); 80/10/10 as in BERT.
    """

    masked_lm_prob: Probability = setting(0.15, "Fraction of the tokens of a sequence to predict.")
    leave_unmasked: Probability = setting(
        0.1, "Fraction of the tokens to predict that the model sees unchanged."
    )
    replace_random: Probability = setting(
        0.1, "Fraction of the tokens to predict that are replaced by random ones, not by [MASK]."
    )
    max_ngram: int = setting(
        3, "Largest number of words masked together, N; p(n) is proportional to 1/n.", ge=1, le=10
    )
    favor_shorter_ngram: bool = setting(True, "False reverses the distribution of n.")
    word_start: Literal["unicode", "reference", "piece"] = setting(
        "unicode",
        "How starts of words are recognized: unicode is correct for all scripts, "
        "reference is the rule of google-research/albert, for a-z only, and with piece "
        "every piece is a word, as in the first BERT.",
    )
    random_pieces: Literal["ordinary", "all"] = setting(
        "ordinary",
        "Vocabulary entries that may replace a masked token: ordinary ones, or all, "
        "including special ones, as in google-research/albert.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("leave_unmasked", "replace_random"),
            lambda unmasked, random: unmasked + random <= 1,
            "must not exceed 1 together with `replace_random`",
        ),
    )


#: Sources of masks for a reader; "auto" uses the masks in the records if there are any.
MASKS = ("auto", "static", "dynamic")

#: Longest record. Attention takes memory that grows with the square of the length.
LONGEST_RECORD = 8192

#: Formats whose records have one segment, and therefore no sentence order to predict.
SINGLE_SEGMENT_FORMATS = ("full-sentences", "doc-sentences")


class PretrainingDataConfig(Settings):
    """Settings that turn a corpus into pre-training records; stored beside the records.

    `full-sentences` and `doc-sentences` are the formats of RoBERTa
    (https://arxiv.org/abs/1907.11692, section 4.2).
    """

    max_seq_length: int = option(
        512, "Tokens per record, including [CLS] and [SEP].", ge=8, le=LONGEST_RECORD
    )
    max_predictions_per_seq: int | None = option(
        None,
        "Masked tokens per record at most.",
        default_text="masking.masked_lm_prob of the tokens",
        ge=1,
    )
    copies: int = option(1, "Passes over the corpus, each with different segments and masks.", ge=1)
    input_format: Literal["segment-pair", "sentence-pair", "full-sentences", "doc-sentences"] = (
        option(
            "segment-pair",
            "Text of a record: two segments of several sentences, two single sentences, or one "
            "segment that either may cross document boundaries or may not.",
        )
    )
    objective: Literal["sop", "nsp", "none"] | None = option(
        None,
        "Sentence objective: sop predicts whether two segments are swapped, nsp whether the "
        "second one is random. A single segment has none.",
        default_text="sop for pairs",
    )
    short_seq_prob: Probability = setting(
        0.1, "Fraction of the sequences with a random shorter target length."
    )
    short_sequences: Literal["stretch", "document"] = setting(
        "stretch",
        "Whether the shorter length is sampled for each stretch of sentences, or once "
        "for each document and copy as in google-research/albert.",
    )
    single_sentence_policy: Literal["split", "skip", "nsp"] = setting(
        "split",
        "For a stretch of one sentence, which has no second segment: split it at the "
        "start of a word, skip it, or take a random second segment with label 1 (nsp) as in "
        "google-research/albert. With `objective=nsp`, pairs of segments always do the latter.",
    )
    overflow: Literal["carry", "cut"] = setting(
        "carry",
        "Text beyond the length of a record of two segments: carry, it begins the next record, and "
        "sentences longer than a segment are split; or cut, it is dropped, as in "
        "google-research/albert.",
    )
    static_masks: bool = option(
        True, "Store masks in the records; otherwise the reader samples them in each epoch."
    )
    language: str = option("en", "Language code for sentence splitting.", metavar="CODE")
    splitter: str = option(
        "sentencex", "Sentence splitter: sentencex, or line for one sentence per paragraph."
    )
    num_shards: int | None = option(
        None, "Number of record files.", default_text="by corpus size", ge=1
    )
    seed: int = option(12345, "Random seed.", ge=0, le=MAX_LONG_INTEGER)
    masking: MaskingConfig = MaskingConfig()

    rules = (
        Rule(
            ("max_predictions_per_seq", "max_seq_length"),
            lambda predictions, length: predictions is None or predictions <= length - 3,
            "must leave room for [CLS] and [SEP] in `max_seq_length`",
        ),
        Rule(
            ("objective", "input_format"),
            lambda objective, format: (
                objective in (None, "none") or format not in SINGLE_SEGMENT_FORMATS
            ),
            "must be `none` for a format with one segment",
        ),
        Rule(
            ("single_sentence_policy", "objective"),
            lambda policy, objective: (policy, objective) != ("nsp", "none"),
            "must not be `nsp`, which labels random second segments, if `objective` is `none`",
        ),
    )

    @classmethod
    def preset(cls, name: str, /, **changes: Any) -> "PretrainingDataConfig":
        """Creates the configuration of a published recipe.

        Args:
            name: str. One of `PRESETS`.
            **changes: Settings that differ; `masking` may be a dict with some of its settings.

        Returns:
            PretrainingDataConfig.

        Raises:
            InputError: If the preset is unknown or a setting is invalid.
        """
        if name not in PRESETS:
            raise InputError(f"`preset={name}` is unknown{did_you_mean(name, PRESETS)}")
        preset: dict[str, Any] = PRESETS[name]
        values = preset | changes
        masking = changes.get("masking", {})
        if isinstance(masking, dict):
            values["masking"] = preset.get("masking", {}) | masking
        return cls(**values)

    @property
    def num_predictions(self):
        """int. `max_predictions_per_seq`, or its default, ceil(`masked_lm_prob` · S), P."""
        wanted = math.ceil(self.max_seq_length * self.masking.masked_lm_prob)
        return self.max_predictions_per_seq or max(1, wanted)

    @property
    def max_num_tokens(self):
        """int. Tokens of text in a record: all but [CLS] and one [SEP] or two.

        A pair with two [SEP] between its segments, as in RoBERTa, has one token less.
        """
        return self.max_seq_length - (2 if self.input_format in SINGLE_SEGMENT_FORMATS else 3)

    @property
    def label_objective(self):
        """str. `objective`, or its default: "sop" for pairs, "none" for one segment."""
        return self.objective or ("none" if self.input_format in SINGLE_SEGMENT_FORMATS else "sop")


#: Published recipes. "reference" is google-research/albert with its default flags and two
#: corrections that cannot be disabled: all sampling is seeded, and no n-gram crosses [SEP].
PRESETS = {
    "albert": {},
    "reference": {
        "max_predictions_per_seq": 20,
        "copies": 40,
        "short_sequences": "document",
        "single_sentence_policy": "nsp",
        "overflow": "cut",
        "masking": {"word_start": "reference", "random_pieces": "all"},
    },
    "bert": {
        "max_seq_length": 128,
        "max_predictions_per_seq": 20,
        "copies": 10,
        "objective": "nsp",
        "short_sequences": "document",
        "overflow": "cut",
        "masking": {"max_ngram": 1},
    },
    "roberta": {
        "input_format": "full-sentences",
        "short_seq_prob": 0,
        "static_masks": False,
        "masking": {"max_ngram": 1},
    },
}
