"""What a GPU computes, how fast, and with how much memory; see `__main__.py`."""
