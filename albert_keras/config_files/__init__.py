"""Files of settings: written with every setting explained, and checked with line numbers."""
