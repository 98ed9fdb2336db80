"""Status codes of a model server: gRPC codes and the HTTP statuses they become."""

#: gRPC code -> HTTP status, in the order of the numbers that gRPC gives the codes.
HTTP_STATUS = {
    "OK": 200,
    "CANCELLED": 499,
    "UNKNOWN": 500,
    "INVALID_ARGUMENT": 400,
    "DEADLINE_EXCEEDED": 504,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "PERMISSION_DENIED": 403,
    "RESOURCE_EXHAUSTED": 429,
    "FAILED_PRECONDITION": 400,
    "ABORTED": 409,
    "OUT_OF_RANGE": 400,
    "UNIMPLEMENTED": 501,
    "INTERNAL": 500,
    "UNAVAILABLE": 503,
    "DATA_LOSS": 500,
    "UNAUTHENTICATED": 401,
}


class StatusError(Exception):
    """A request that fails with a gRPC `code` and a `message` of at most 1024 characters."""

    def __init__(self, code: str, message: str):
        super().__init__(message)
        self.code, self.message = code, message[:1024]


def invalid(message: str) -> StatusError:
    return StatusError("INVALID_ARGUMENT", message)


def status_of(error: Exception) -> StatusError:
    """Returns any exception as a StatusError; an error of TensorFlow keeps its code."""
    import tensorflow as tf

    if isinstance(error, StatusError):
        return error
    if isinstance(error, tf.errors.OpError):
        return StatusError(list(HTTP_STATUS)[error.error_code], error.message)
    if isinstance(error, ValueError | TypeError):
        return invalid(str(error))
    return StatusError("UNKNOWN", f"{type(error).__name__}: {error}")
