"""What `benchmark infer` compares: our export, and the peers, each behind a `prepare` of its own.

A module loads its library inside its functions, since each contestant runs in a process of its own.
"""
