"""The contract between records and model: name, dtype and length of each feature.

Writer and reader are both derived from this table.
"""

from typing import NamedTuple


class Feature(NamedTuple):
    """One feature of a record."""

    dtype: str  # "int64" or "float32", as `tf.train.Example` stores it
    length: str  # "sequence" (S values), "predictions" (P values) or "scalar" (one value)
    required: bool = True  # whether a reader needs it; foreign records may lack the others


#: Features of a pre-training record, named as in google-research/albert
#: (`create_pretraining_data.py`) so that either code reads the other's files. `token_boundary` is 1
#: where a word starts, so that a reader can mask again; `next_sentence_labels` is the sentence
#: order, 1 = swapped (or random, under next-sentence prediction).
PRETRAINING_FEATURES = {
    "input_ids": Feature("int64", "sequence"),
    "input_mask": Feature("int64", "sequence"),
    "segment_ids": Feature("int64", "sequence"),
    "token_boundary": Feature("int64", "sequence", required=False),
    "masked_lm_positions": Feature("int64", "predictions"),
    "masked_lm_ids": Feature("int64", "predictions"),
    "masked_lm_weights": Feature("float32", "predictions"),
    "next_sentence_labels": Feature("int64", "scalar"),
}

#: Names of the features that a reader needs.
REQUIRED_FEATURES = tuple(
    name for name, feature in PRETRAINING_FEATURES.items() if feature.required
)


def feature_length(feature: Feature, max_seq_length: int, max_predictions_per_seq: int) -> int:
    """Returns the number of values of a feature in records of the given lengths."""
    lengths = {"sequence": max_seq_length, "predictions": max_predictions_per_seq, "scalar": 1}
    return lengths[feature.length]


def feature_limits(max_seq_length, vocab_size):
    """Returns name -> (exclusive upper limit of the values of a feature, its meaning)."""
    limits = dict.fromkeys(PRETRAINING_FEATURES, (2**31, "the range of 32-bit integers"))
    limits["input_ids"] = limits["masked_lm_ids"] = vocab_size, "the size of the vocabulary"
    limits["masked_lm_positions"] = max_seq_length, "the length of a record"
    return limits


def schema_fault(features, info, names=PRETRAINING_FEATURES) -> str | None:
    """Returns the fault of features as of `decode_instance`, which completes "record 17 ...".

    Only features with these names are checked; a missing required one is a fault.
    """
    lengths = info.max_seq_length, info.max_predictions_per_seq
    limits = feature_limits(info.max_seq_length, info.vocab_size)
    for name in names:
        feature = PRETRAINING_FEATURES[name]
        if name not in features:
            if feature.required:
                return f"has no feature `{name}`"
            continue
        values, length = features[name], feature_length(feature, *lengths)
        if values.dtype != feature.dtype or len(values) != length:
            return (
                f"must have {length} {feature.dtype} values in `{name}`, "
                f"but has {len(values)} of {values.dtype}"
            )
        if feature.dtype == "int64":
            limit, meaning = limits[name]
            wrong = values[(values < 0) | (values >= limit)]
            if wrong.size:
                return (
                    f"must have values of `{name}` from 0 to below {limit}, {meaning}, "
                    f"but has {wrong[0]}"
                )
    return None
