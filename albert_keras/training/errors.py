"""What a caller of training may want to catch."""


class TrainingStopped(Exception):
    """A signal ended a run before its last step; its state is saved.

    Attributes:
        step: int. The step that was saved.
    """

    def __init__(self, path, step):
        self.step = step
        super().__init__(
            f"stopped and saved `{path}` at step {step}; give the same command to go on"
        )
