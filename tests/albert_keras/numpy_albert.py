"""The oracle in NumPy and what tests do with weights besides."""

import numpy as np

from albert_keras.conversion.numpy_albert import ACTIVATIONS, encode

__all__ = ["ACTIVATIONS", "encode", "scramble", "weights_by_name"]


def scramble(model, seed=1):
    """Gives every weight of a model random values, so that none is hidden by being 0 or 1."""
    rng = np.random.default_rng(seed)
    model.set_weights([weight + rng.normal(0, 0.1, weight.shape) for weight in model.get_weights()])


def weights_by_name(model):
    """Returns the model's weights as a dict of arrays, under their names."""
    return {weight.name.removesuffix(":0"): weight.numpy() for weight in model.weights}
