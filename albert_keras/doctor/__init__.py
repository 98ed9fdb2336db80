"""Examines this machine: what works, what is missing, and the command that fixes it."""
