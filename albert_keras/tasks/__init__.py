"""Fine-tuning and evaluation: files of a task → examples → features → model → scores."""
