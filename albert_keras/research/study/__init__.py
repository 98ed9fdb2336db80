"""Studies: comparisons of runs that differ in a few settings, such as the tables of the papers.

`definitions/` has a YAML file for each study that comes with the package, and `scales.yaml` the
settings of each scale. Reading them needs no TensorFlow.
"""
