"""A fixture of the packages' tests that the tools' tests use, too."""

from tests.albert_keras.conftest import tiny_training as tiny_training
