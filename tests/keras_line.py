"""What differs in tests between Keras 2.15 and Keras 3."""

from importlib import metadata

#: Whether `import keras` is Keras 3.
IS_KERAS_3 = metadata.version("keras").startswith("3.")


def any_sgd(learning_rate=0.1):
    """Returns an SGD of Keras; of Keras 2.15 the older one, which has other methods."""
    import keras

    return (keras.optimizers if IS_KERAS_3 else keras.optimizers.legacy).SGD(learning_rate)
