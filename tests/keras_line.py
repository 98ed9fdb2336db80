"""What differs in tests between Keras 2.15 and Keras 3."""

from importlib import metadata

#: Whether `import keras` is Keras 3.
IS_KERAS_3 = metadata.version("keras").startswith("3.")
