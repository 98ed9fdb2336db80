"""How similar two texts are: the cosine of their vectors."""
