"""The contract between records and model: each feature's name, dtype and length.

Writer and reader are both derived from the one table here.
"""

from typing import NamedTuple


class Feature(NamedTuple):
    """One feature of a record.

    Attributes:
        dtype: str. "int64" or "float32", as `tf.train.Example` stores it.
        length: str. "sequence" (`max_seq_length` values), "predictions"
            (`max_predictions_per_seq` values) or "scalar" (one value).
        required: bool. Whether a reader needs it; others may be absent in foreign records.
    """

    dtype: str
    length: str
    required: bool = True


#: Features of a pre-training record, named as in google-research/albert
#: (`create_pretraining_data.py`) so that either code reads the other's files. `token_boundary` is 1
#: where a word starts, so that a reader may mask anew; `next_sentence_labels` holds the sentence
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


def feature_length(feature, max_seq_length, max_predictions_per_seq):
    """Tells how many values a feature holds in records of the given lengths (int)."""
    lengths = {"sequence": max_seq_length, "predictions": max_predictions_per_seq, "scalar": 1}
    return lengths[feature.length]
