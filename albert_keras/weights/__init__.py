"""Weights from anywhere: a run, a checkpoint, an export, a `.keras` file, or random ones.

initial_weights  `open_weights`: weights together with the shape of their model and their tokenizer
find             where weights are stored, and what is known about them
source_tensors   how tensors are read from a checkpoint or a `.keras` file
load             how they are assigned to a model, and the report of what was loaded
"""
