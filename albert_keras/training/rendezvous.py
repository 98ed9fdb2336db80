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
from collections.abc import Callable, Iterator

from albert_keras.training.cluster import Workers
from data_pipeline.errors import InputError
from data_pipeline.progress import format_duration

logger = logging.getLogger(__name__)

#: What the workers say to each other.
_GREETING = b"albert-keras worker "
_GO = b"go\n"
_OTHERS = b"other workers\n"
_LINE = 128
#: Seconds between two attempts.
_PAUSE = 0.25
#: Seconds between two lines that list missing workers.
_SECONDS_BETWEEN_LINES = 25


def meet(workers: Workers, timeout: float = 600):
    """Waits until all workers are connected, `timeout` seconds at most.

    Raises:
        InputError: If a worker is missing, the port is in use, or their TF_CONFIG differ.
    """
    if len(workers.addresses) == 1:
        return
    if workers.index == 0:
        _receive(workers, timeout)
    else:
        _call(workers, timeout)
    logger.info("all %d workers are connected", len(workers.addresses))


def _attempts(timeout: float, missing: Callable[[], str]) -> Iterator[None]:
    """Yields for each attempt, logs regularly who is missing, and raises InputError at the end."""
    started, logged = time.monotonic(), None
    while (now := time.monotonic()) < started + timeout:
        if logged is None or now > logged + _SECONDS_BETWEEN_LINES:
            logged = now
            logger.info("waiting for worker %s", missing())
        yield
    raise InputError(
        f"Workers of `TF_CONFIG` did not connect within {format_duration(timeout)}: {missing()}. "
        "Start the same command on each, with its own `index`, and make sure that the addresses "
        "can be reached."
    )


def _receive(workers, timeout):
    """On the first worker: accepts connections until there is one of each, then lets all go."""
    others = range(1, len(workers.addresses))
    greetings = {_greeting(workers._replace(index=index)): index for index in others}
    present: dict[int, socket.socket] = {}
    port, listener, reason = int(workers.addresses[0].rpartition(":")[2]), None, ""

    def missing():
        names = [f"{one} ({workers.addresses[one]})" for one in others if one not in present]
        return ", ".join(names) + reason

    with contextlib.ExitStack() as stack:
        for _ in _attempts(timeout, missing):
            try:
                if listener is None:
                    listener = stack.enter_context(socket.create_server(("", port)))
                    listener.settimeout(_PAUSE)
                    reason = ""
                call = stack.enter_context(listener.accept()[0])
                call.settimeout(5)
                line = call.recv(_LINE)
            except TimeoutError:
                continue
            except OSError as error:  # the port is still that of a process that ends
                reason = f" ({error})"
                time.sleep(_PAUSE)
                continue
            if line in greetings:  # a worker that was started again replaces the earlier one
                present[greetings[line]] = call
            elif line.startswith(_GREETING):
                _send(call, _OTHERS)
            if len(present) == len(greetings):
                break
        for call in present.values():
            _send(call, _GO)
        # They close first: a port cannot be reused at once by the side that closed.
        for call in present.values():
            with contextlib.suppress(OSError):
                call.recv(_LINE)


def _call(workers, timeout):
    """On the other workers: connects until the first one answers that all are connected."""
    host, _, port = workers.addresses[0].rpartition(":")
    for _ in _attempts(timeout, lambda: f"0 ({workers.addresses[0]})"):
        answer = b""
        with contextlib.suppress(OSError):
            with socket.create_connection((host.strip("[]"), int(port)), timeout=5) as call:
                call.sendall(_greeting(workers))
                call.settimeout(timeout)  # the first worker waits so long for the others
                answer = call.recv(_LINE)
        if answer == _GO:
            return
        if answer == _OTHERS:
            raise InputError(
                "`TF_CONFIG` must name the same workers on every worker. Received: "
                f"{', '.join(workers.addresses)} here, and other workers on the first one."
            )
        time.sleep(_PAUSE)


def _greeting(workers):
    names = hashlib.sha256("\n".join(workers.addresses).encode()).hexdigest()[:16]
    return _GREETING + f"{workers.index} of {names}\n".encode()


def _send(call, line):
    with contextlib.suppress(OSError):
        call.sendall(line)
