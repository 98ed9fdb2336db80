"""Questions whose answers are spans of a passage, as in SQuAD."""
