"""Errors of the model server: codes of gRPC, their numbers in HTTP."""

#: Code -> (number in gRPC, status in HTTP).
CODES = {
    "OK": (0, 200),
    "CANCELLED": (1, 499),
    "UNKNOWN": (2, 500),
    "INVALID_ARGUMENT": (3, 400),
    "DEADLINE_EXCEEDED": (4, 504),
    "NOT_FOUND": (5, 404),
    "ALREADY_EXISTS": (6, 409),
    "PERMISSION_DENIED": (7, 403),
    "RESOURCE_EXHAUSTED": (8, 429),
    "FAILED_PRECONDITION": (9, 400),
    "ABORTED": (10, 409),
    "OUT_OF_RANGE": (11, 400),
    "UNIMPLEMENTED": (12, 501),
    "INTERNAL": (13, 500),
    "UNAVAILABLE": (14, 503),
    "DATA_LOSS": (15, 500),
    "UNAUTHENTICATED": (16, 401),
}
_LONGEST = 1024


class StatusError(Exception):
    """What a request ends with, `code` str and `message` str, cut as the server cuts it."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code, self.message = code, message[:_LONGEST]

    @property
    def http_status(self):
        return CODES[self.code][1]


def invalid(message):
    """Returns an INVALID_ARGUMENT to raise."""
    return StatusError("INVALID_ARGUMENT", message)


def of_tensorflow(error):
    """Returns the StatusError of what TensorFlow raised."""
    import tensorflow as tf

    if isinstance(error, tf.errors.OpError):
        for code, (number, _) in CODES.items():
            if number == error.error_code:
                return StatusError(code, error.message)
    if isinstance(error, ValueError | TypeError):
        return invalid(str(error))
    return StatusError("UNKNOWN", f"{type(error).__name__}: {error}")
