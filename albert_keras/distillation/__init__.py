"""Distillation: a small model learns from the predictions of a trained one."""
