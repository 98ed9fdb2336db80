"""Measures on this machine what users wait for: building records, reading them."""
