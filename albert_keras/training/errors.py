"""Exceptions of training that a caller may want to catch."""

import signal

from data_pipeline.errors import Mistake


class TrainingStopped(Exception):
    """A signal ended a run early; its state is saved."""

    def __init__(self, path, step, number=None):
        self.step = step  # the step that was saved
        self.number = number or signal.SIGTERM  # the signal, also if another worker received it
        super().__init__(
            f"stopped and saved `{path}` at step {step}; give the same command to resume it"
        )


class WorkerLost(Exception):
    """Another worker is gone; training can only resume in a new process, from a checkpoint."""


class TrainingDiverged(Exception):
    """A run ended because too many consecutive updates had to be skipped; its state is saved."""

    mistakes = (Mistake.DIVERGED,)

    def __init__(self, path, step: int, skipped: int):
        self.step = step  # the step that was saved
        super().__init__(
            f"`{path}` ended at step {step}: loss or gradients of the last {skipped} steps were "
            "not finite, or had spikes. The weights from before these steps are saved. Lower `lr`, "
            "or give the same command to continue with the next records."
        )
