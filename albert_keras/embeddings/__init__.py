"""Vectors of texts: computing, storing and searching them."""
