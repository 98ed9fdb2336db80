"""The words a user may choose from; free of TensorFlow, so that the command line starts fast."""

#: Where training runs; `strategy.py` says what each means.
STRATEGIES = ("auto", "tpu", "mirrored", "multiworker", "single")

#: What the arithmetic is done in; weights and moments are float32 in all of them. "auto" is
#: mixed_bfloat16 where the hardware multiplies it fast: a TPU, a CPU with AMX.
PRECISIONS = ("auto", "float32", "mixed_bfloat16", "mixed_float16")
