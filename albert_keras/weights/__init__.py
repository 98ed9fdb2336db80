"""Weights from anywhere: a run, a checkpoint, an export, a `.keras` file, or random ones."""
