"""The contestants of `benchmark learn`, each trained by a process of its own for the same time."""
