"""Workers wait for each other before TensorFlow starts.

TensorFlow waits up to an hour for a missing worker, without a message, ignoring SIGTERM and with
all Python threads stopped. So the workers meet here first: each connects to the first worker, at
its address in TF_CONFIG. Once all are connected, the first one lets them go and frees the port for
TensorFlow.
"""

import contextlib
import hashlib
import logging
import socket
import time

from albert_keras.training.cluster import Workers
from data_pipeline.errors import InputError
from data_pipeline.progress import format_duration

logger = logging.getLogger(__name__)

_GREETING, _GO, _OTHERS = b"albert-keras worker ", b"go\n", b"other workers\n"
_LINE = 128
#: Seconds between two attempts, and between two lines that list missing workers.
_PAUSE, _SECONDS_BETWEEN_LINES = 0.25, 25


def meet(workers: Workers, timeout: float = 600):
    """Waits until all workers are connected, `timeout` seconds at most.

    Raises:
        InputError: If a worker is missing, the port is in use, or their TF_CONFIG differ.
    """
    if len(workers.addresses) == 1:
        return
    deadline = _Deadline(timeout)
    if workers.index == 0:
        _receive(workers, deadline)
    else:
        _call(workers, deadline)
    logger.info("all %d workers are connected", len(workers.addresses))


class _Deadline:
    def __init__(self, seconds):
        self._seconds = seconds
        self._started = time.monotonic()
        self._logged = None

    def wait_for(self, missing, reason=""):
        """Logs regularly who is missing, and raises InputError after the deadline."""
        now = time.monotonic()
        if now > self._started + self._seconds:
            raise InputError(
                f"Workers of `TF_CONFIG` did not connect within {format_duration(self._seconds)}: "
                f"{', '.join(missing)}{reason}. Start the same command on each, with its own "
                "`index`, and make sure that the addresses can be reached."
            )
        if self._logged is None or now > self._logged + _SECONDS_BETWEEN_LINES:
            self._logged = now
            logger.info("waiting for worker %s%s", ", ".join(missing), reason)


def _receive(workers, deadline):
    """On the first worker: accepts connections until there is one of each, then lets all go."""
    others = range(1, len(workers.addresses))
    greetings = {_greeting(workers._replace(index=index)): index for index in others}
    present: dict[int, socket.socket] = {}
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(_listen(workers, deadline))
        listener.settimeout(_PAUSE)
        while len(present) < len(greetings):
            deadline.wait_for(
                [f"{i} ({workers.addresses[i]})" for i in greetings.values() if i not in present]
            )
            try:
                call = stack.enter_context(listener.accept()[0])
            except TimeoutError:
                continue
            call.settimeout(5)
            line = _read_line(call)
            if line in greetings:  # a worker that was started again replaces the earlier one
                present[greetings[line]] = call
            elif line.startswith(_GREETING):
                _send(call, _OTHERS)
        for call in present.values():
            _send(call, _GO)
        # They close first: a port cannot be reused at once by the side that closed.
        for call in present.values():
            _read_line(call)


def _call(workers, deadline):
    """On the other workers: connects until the first one answers that all are connected."""
    host, _, port = workers.addresses[0].rpartition(":")
    reason = ""
    while True:
        deadline.wait_for([f"0 ({workers.addresses[0]})"], reason)
        answer = b""
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=5) as call:
                reason = ""
                call.sendall(_greeting(workers))
                call.settimeout(_PAUSE)
                while not (answer := _read_line(call, patient=True)):
                    deadline.wait_for(["0 to report that all are connected"])
        except OSError as error:
            reason = f" ({error})"
        if answer == _GO:
            return
        if answer == _OTHERS:
            raise InputError(
                "`TF_CONFIG` must name the same workers on every worker. Received: "
                f"{', '.join(workers.addresses)} here, and other workers on the first one."
            )
        time.sleep(_PAUSE)


def _listen(workers, deadline):
    port = int(workers.addresses[0].rpartition(":")[2])
    while True:
        try:
            return socket.create_server(("", port))
        except OSError as error:
            deadline.wait_for([f"0 to get port {port}"], f" ({error})")
            time.sleep(_PAUSE)


def _greeting(workers):
    names = hashlib.sha256("\n".join(workers.addresses).encode()).hexdigest()[:16]
    return _GREETING + f"{workers.index} of {names}\n".encode()


def _read_line(call, patient=False):
    """Reads a line; with `patient` b"" if there is none yet; a line end if the peer has closed."""
    try:
        return call.recv(_LINE) or b"\n"
    except TimeoutError:
        return b"" if patient else b"\n"
    except OSError:
        return b"\n"


def _send(call, line):
    with contextlib.suppress(OSError):
        call.sendall(line)
