"""This machine and what to run on it: `doctor` examines it, `plan` plans a training for it."""
