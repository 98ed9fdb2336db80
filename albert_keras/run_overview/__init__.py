"""The runs of a folder: listed, compared and removed. No TensorFlow."""
