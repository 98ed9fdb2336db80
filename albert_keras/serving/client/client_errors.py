"""What a server said, and what to do about it, in one sentence each; and when to ask again."""

import random
import time

from data_pipeline.errors import InputError

#: The code of gRPC for a status of HTTP, as `tensorflow_model_server` and proxies give them.
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
#: Codes of a server that is there but busy, or not there yet.
_PASSING = ("UNAVAILABLE", "RESOURCE_EXHAUSTED")
_TOO_LARGE = "larger than max"  # of gRPC about a message; asking again would not help

_ROWS = "All rows of a request are to have the same shape: one text each."
_INPUTS = "Give all inputs of the signature and no others; `metadata()` lists them."

#: Part of a message, lower case -> what to do. The first that is found counts.
_BY_MESSAGE = (
    (
        "servable not found for request: specific",
        "Ask for a version that `status()` tells as AVAILABLE, or for none to get the newest.",
    ),
    (
        "servable not found",
        "Compare the name with `models.config`; a model that is still loading "
        "is not found either: see `status()`.",
    ),
    (
        "could not find any versions",
        "Compare the name with `models.config`; its `base_path` is to "
        "hold folders named by a number.",
    ),
    ("could not find version", "Ask for a version that `status()` lists."),
    ("version label", "Labels stand in `models.config` and count for loaded versions only."),
    ("serving signature", "Choose a signature that `metadata()` lists."),
    ("keys must be equal", _INPUTS),
    ("named input", _INPUTS),
    ("input tensor alias", _INPUTS),
    ("does not match signature", _INPUTS),
    ("output tensor alias", "Choose outputs that `metadata()` lists for the signature."),
    ("plain list", "The signature has several inputs: give each by its name."),
    ("not of expected type", "Give values of the type that `metadata()` lists for the input."),
    ("base64 decode", "Use the standard alphabet of base64 (`+` and `/`), with padding."),
    ("equal 0th-dimension", "Give all inputs the same number of rows."),
    ("expecting tensor size", _ROWS),
    ("expecting shape", _ROWS),
    ("unexpected size", _ROWS),
    ("incorrect level", _ROWS),
    ("unexpected level", _ROWS),
    (
        "larger than maximum input batch size",
        "Send fewer rows in a request, or raise `max_batch_size` of `batching.config`.",
    ),
    (
        "different shapes and padding is turned off",
        "Requests with ids of different lengths do not "
        "batch: pad them to one length, or use a signature that takes text.",
    ),
    ("input is empty", "Give at least one row."),
    ("no values in", "Give at least one row."),
    ("json parse error", "The body is not JSON."),
    (
        "op type not registered",
        "The server lacks an operation of the model: use the image of the server kit.",
    ),
    (_TOO_LARGE, "Raise `max_message_bytes`, or send fewer rows in a request."),
    ("batch scheduling queue", "Send from fewer clients, or raise `max_enqueued_batches`."),
)

#: Code -> what to do where no message tells more.
_BY_CODE = {
    "UNAUTHENTICATED": "The proxy before the server wants credentials.",
    "PERMISSION_DENIED": "The proxy before the server does not let this request through.",
    "NOT_FOUND": "Compare address, model and version with `models.config`.",
    "RESOURCE_EXHAUSTED": "The server is busy: send from fewer clients, or later.",
    "UNAVAILABLE": "The server is not there or busy: compare the address, or ask later.",
    "DEADLINE_EXCEEDED": "Raise `timeout`, or send fewer rows in a request.",
    "UNIMPLEMENTED": "Something else than the model server answers at this address.",
    "INTERNAL": "The log of the server tells more.",
    "TOO_LARGE": "Send fewer rows in a request: the proxy before the server limits the body.",
    "UNREADABLE": "Something else than the model server answers at this address.",
}


class ServingError(InputError):
    """The server refused, failed or did not answer.

    Attributes:
        code: str. Of gRPC, such as "NOT_FOUND"; also "TOO_LARGE" (HTTP 413) and "UNREADABLE".
        said: str. The message of the server, or of the network where no server answered.
        http_status: int or None. None where no HTTP answer came.
    """

    def __init__(self, target, code, said, http_status=None, more="", answered=True):
        self.code, self.said, self.http_status = code, said, http_status
        number = f" (HTTP {http_status})" if http_status else ""
        did = f"answered {code}{number}" if answered else f"gave no answer ({code})"
        said = " ".join(said.split()).rstrip(".")
        parts = (f"`{target}` {did}: {said}.", advice(code, said), more)
        super().__init__(" ".join(part for part in parts if part))

    @property
    def passing(self):
        """bool. Whether the same request may succeed a little later."""
        return self.code in _PASSING and _TOO_LARGE not in self.said.lower()


def advice(code, said):
    """Returns what to do, a str; empty where nothing is known.

    Args:
        code: str. See `ServingError.code`.
        said: str. The message of the server.
    """
    said = said.lower()
    for part, what_to_do in _BY_MESSAGE:
        if part in said:
            return what_to_do
    return _BY_CODE.get(code, "")


class Retries:
    """Repeats a call that changes nothing at the server, within one time limit.

    Waits 0.1 s, 0.2 s, 0.4 s and so on, each times a random number from 0.5 to 1, so that clients
    that failed together do not come back together.

    Args:
        retries: int. How often to repeat.
        timeout: float. Seconds for the call and all repetitions.
        sleep, clock: functions; time.sleep and time.monotonic but in tests.
    """

    def __init__(self, retries, timeout, sleep=time.sleep, clock=time.monotonic):
        if not isinstance(retries, int) or retries < 0:
            raise InputError(f"`retries` should be an int, 0 or more. Received: {retries!r}.")
        if not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
            raise InputError(
                f"`timeout` should be a positive number of seconds. Received: {timeout!r}."
            )
        self._retries, self._timeout = retries, timeout
        self._sleep, self._clock = sleep, clock

    def run(self, call):
        """Returns `call(seconds)`, `seconds` what is left of the time limit.

        Raises:
            ServingError: The last one, where it stays or would not pass.
        """
        end = self._clock() + self._timeout
        for attempt in range(self._retries + 1):
            try:
                return call(max(end - self._clock(), 0.001))
            except ServingError as error:
                pause = 0.1 * 2**attempt * random.uniform(0.5, 1)
                last = attempt == self._retries or self._clock() + pause >= end
                if last or not error.passing:
                    raise
                self._sleep(pause)
