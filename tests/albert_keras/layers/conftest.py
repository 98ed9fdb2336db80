"""Kernels as plain operations, and compiled."""

import pytest

from albert_keras.layers.kernels import compiled_kernels


@pytest.fixture(params=[False, True], ids=["plain", "compiled"])
def kernels(request):
    with compiled_kernels(request.param):
        yield
