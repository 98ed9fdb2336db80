"""Errors of a server with advice on what to do, and when to repeat a request."""

import random
import time

from data_pipeline.errors import InputError, Mistake

#: HTTP status -> gRPC code, as `tensorflow_model_server` and proxies use them.
CODES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
#: Codes of a server that is busy or not ready yet.
_TEMPORARY = ("UNAVAILABLE", "RESOURCE_EXHAUSTED")
_TOO_LARGE = "larger than max"  # gRPC about a message; a repetition would not help

_ROWS = "All rows of a request must have the same shape, such as one text each."
_INPUTS = "Give all inputs of the signature and no others; `metadata()` lists them."
_VERSIONS = "Choose a version that `status()` lists as AVAILABLE, or omit it to use the newest."
_NAME = (
    "Compare the name with `models.config`, and see `status()`: a model that is still loading is "
    "not found either."
)

#: Part of a message of `tensorflow_model_server`, lower case -> advice. The first match counts.
_BY_MESSAGE = {
    "servable not found for request: specific": _VERSIONS,
    "servable not found": _NAME,
    "could not find any versions": _NAME,
    "could not find version": _VERSIONS,
    "version label": "Labels are set in `models.config` and apply to loaded versions only.",
    "serving signature": "Choose a signature that `metadata()` lists.",
    "keys must be equal": _INPUTS,
    "named input": _INPUTS,
    "input tensor alias": _INPUTS,
    "does not match signature": _INPUTS,
    "output tensor alias": "Choose outputs that `metadata()` lists for the signature.",
    "plain list": "The signature has several inputs: give each of them by name.",
    "not of expected type": "Give values of the type that `metadata()` lists for the input.",
    "base64 decode": "Use the standard alphabet of base64 (`+` and `/`), with padding.",
    "equal 0th-dimension": "Give all inputs the same number of rows.",
    "expecting tensor size": _ROWS,
    "expecting shape": _ROWS,
    "unexpected size": _ROWS,
    "incorrect level": _ROWS,
    "unexpected level": _ROWS,
    "larger than maximum input batch size": "Send fewer rows per request, or raise "
    "`max_batch_size` in `batching.config`.",
    "different shapes and padding is turned off": "Requests with ids of different lengths cannot "
    "share a batch: pad them to one length, or use a signature that takes text.",
    "input is empty": "Give at least one row.",
    "no values in": "Give at least one row.",
    "json parse error": "The body must be JSON.",
    "op type not registered": "The server lacks an operation of the model: use the image of the "
    "server kit.",
    _TOO_LARGE: "Raise `max_message_bytes`, or send fewer rows per request.",
    "batch scheduling queue": "Send requests from fewer clients, or raise `max_enqueued_batches`.",
}

#: Code -> advice if no part of the message matches.
_BY_CODE = {
    "UNAUTHENTICATED": "The proxy in front of the server requires credentials.",
    "PERMISSION_DENIED": "The proxy in front of the server does not allow this request.",
    "NOT_FOUND": "Compare address, model and version with `models.config`.",
    "RESOURCE_EXHAUSTED": "The server is busy: send requests from fewer clients, or try again "
    "later.",
    "UNAVAILABLE": "The server is busy or not running: check the address, or try again later.",
    "DEADLINE_EXCEEDED": "Raise `timeout`, or send fewer rows per request.",
    "UNIMPLEMENTED": "The server at this address is not a model server.",
    "INTERNAL": "See the log of the server.",
    "TOO_LARGE": "Send fewer rows per request: the proxy in front of the server limits the body.",
    "UNREADABLE": "The server at this address is not a model server.",
}


class ServingError(InputError):
    """The server refused the request, failed or did not answer.

    Attributes:
        code: str. gRPC code, such as "NOT_FOUND"; also "TOO_LARGE" (HTTP 413) and "UNREADABLE".
        message: str. The message of the server, or of the network if no server answered.
        http_status: int or None. None if there was no HTTP answer.
    """

    def __init__(self, target, code, message, http_status=None, more="", answered=True):
        self.code, self.message, self.http_status = code, message, http_status
        number = f" (HTTP {http_status})" if http_status else ""
        outcome = f"answered {code}{number}" if answered else f"gave no answer ({code})"
        message = " ".join(message.split()).rstrip(".")
        parts = (f"`{target}` {outcome}: {message}.", advice(code, message), more)
        mistakes = () if answered else (Mistake.NO_ANSWER,)
        super().__init__(" ".join(part for part in parts if part), *mistakes)

    @property
    def temporary(self) -> bool:
        """Whether the same request may succeed a little later."""
        return self.code in _TEMPORARY and _TOO_LARGE not in self.message.lower()


def advice(code: str, message: str) -> str:
    """Returns what to do about a `ServingError` with this code and message; "" if unknown."""
    found = (_BY_MESSAGE[part] for part in _BY_MESSAGE if part in message.lower())
    return next(found, _BY_CODE.get(code, ""))


class Retries:
    """Repeats a call that changes nothing on the server, within `timeout` seconds for all.

    Waits 0.1 s, 0.2 s, 0.4 s and so on, each times a random number from 0.5 to 1, so that clients
    that failed together do not repeat together. Tests replace `sleep` and `clock`.
    """

    def __init__(self, retries: int, timeout: float, sleep=time.sleep, clock=time.monotonic):
        if not isinstance(retries, int) or retries < 0:
            raise InputError(f"`retries` must be an int, 0 or more. Received: {retries!r}.")
        if not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
            raise InputError(
                f"`timeout` must be a positive number of seconds. Received: {timeout!r}."
            )
        self._retries, self._timeout = retries, timeout
        self._sleep, self._clock = sleep, clock

    def run(self, call):
        """Returns `call(seconds)`, with the seconds that are left.

        Raises:
            ServingError: The last one, if it is not temporary or the limits are reached.
        """
        end = self._clock() + self._timeout
        for attempt in range(self._retries + 1):
            try:
                return call(max(end - self._clock(), 0.001))
            except ServingError as error:
                pause = 0.1 * 2**attempt * random.uniform(0.5, 1)
                last = attempt == self._retries or self._clock() + pause >= end
                if last or not error.temporary:
                    raise
                self._sleep(pause)
