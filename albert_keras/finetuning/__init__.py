"""From a pre-trained model to one that solves a task: training, scores, predictions."""
