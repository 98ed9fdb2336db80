"""Checks training steps and predictions for TPUs on a machine without one; see `docs/tpu.md`.

program → trace of `TPUStrategy` → operations against the TPU's kernels → HLO → TPU compiler
"""
