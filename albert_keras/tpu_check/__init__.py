"""Checks the training step for TPUs on a machine that has none; see `docs/tpu.md`.

program → trace of `TPUStrategy` → operations against the TPU's kernels → HLO → TPU compiler
"""
