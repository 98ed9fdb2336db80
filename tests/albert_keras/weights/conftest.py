"""Weights to load: the fixtures of fine-tuning, which begins with them."""

from tests.albert_keras.finetuning.conftest import (  # noqa: F401
    foreign,
    pretrained,
    small_shape,
)
