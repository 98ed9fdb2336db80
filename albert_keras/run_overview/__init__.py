"""All runs of a folder: listed, compared, drawn together, removed. No TensorFlow."""
