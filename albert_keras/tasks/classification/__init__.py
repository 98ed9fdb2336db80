"""Classes, any of several labels, or numbers for texts and pairs of texts."""
