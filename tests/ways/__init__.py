"""All ways to an answer: the same texts, the same answers."""
