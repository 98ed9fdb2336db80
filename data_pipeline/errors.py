"""Errors shared by both packages."""

from data_pipeline.mistakes import Mistake


class InputError(ValueError):
    """A file, a folder or a value from the user cannot be used.

    The message names the thing, the rule and what was received, and if possible what to do. The
    command line prints it without a traceback and exits with code 2.

    Args:
        message: str.
        *mistakes: Mistake. Those that `docs/errors.md` explains.
    """

    def __init__(self, message: str = "", *mistakes: Mistake):
        super().__init__(message)
        self.mistakes = mistakes


class WorkInterrupted(KeyboardInterrupt):
    """Ctrl-C ended work that was not complete; the message says what is saved and what to do."""
