"""The report command: one HTML page about a run, which needs no other file and no network."""
