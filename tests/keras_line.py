"""What differs in tests between Keras 2.15 and Keras 3."""

from importlib import metadata

#: Whether `import keras` is Keras 3.
IS_KERAS_3 = metadata.version("keras").startswith("3.")

#: Starts of the lines that TensorFlow 2.21 writes to stderr when it is imported, whatever the
#: variables say.
LINES_OF_IMPORT = ("WARNING: All log messages before absl", "I0000 ") if IS_KERAS_3 else ()


def any_sgd(learning_rate=0.1):
    """Returns an SGD of Keras; of Keras 2.15 the older one, which has other methods."""
    import keras

    return (keras.optimizers if IS_KERAS_3 else keras.optimizers.legacy).SGD(learning_rate)
