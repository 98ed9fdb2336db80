"""Questions about a passage with options to choose from, as in RACE."""
