"""The runs of a folder: listed, compared, plotted and removed. No TensorFlow."""
