"""The words a user may choose from; free of TensorFlow, so that the command line starts fast."""

#: Where training runs; `strategy.py` says what each means.
STRATEGIES = ("auto", "tpu", "mirrored", "multiworker", "single")

#: What the arithmetic is done in; weights and moments are float32 in both.
PRECISIONS = ("float32", "mixed_bfloat16")
