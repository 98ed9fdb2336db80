"""Fixtures of the packages' tests that the tools' tests use, too."""

from tests.albert_keras.conftest import (
    pretrained as pretrained,
    tiny_run as tiny_run,
    tiny_training as tiny_training,
)
