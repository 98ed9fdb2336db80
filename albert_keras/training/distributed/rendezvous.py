"""Workers wait for each other before TensorFlow does.

TensorFlow waits for a missing worker for an hour, without a word, deaf to SIGTERM and with all
Python threads stopped. So they meet here first: each calls on the first worker, at its address of
TF_CONFIG, and once all are there it sends them off and leaves the port to TensorFlow.
"""

import contextlib
import hashlib
import logging
import selectors
import socket
import time

from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

_GREETING, _GO, _OTHERS = b"albert-keras worker ", b"go\n", b"other workers\n"
_LINE = 128
#: Seconds between two tries, and between two lines that tell who is missing.
_PAUSE, _SECONDS_BETWEEN_LINES = 0.25, 25


def meet(workers, timeout=600):
    """Returns once all workers are here.

    Args:
        workers: Workers.
        timeout: float. Seconds to wait for them.

    Raises:
        InputError: If some do not come, the port is taken, or they were told of other workers.
    """
    if len(workers.addresses) == 1:
        return
    deadline = _Deadline(timeout)
    if workers.index == 0:
        _receive(workers, deadline)
    else:
        _call(workers, deadline)
    logger.info("all %d workers are here", len(workers.addresses))


class _Deadline:
    def __init__(self, seconds):
        self._seconds = seconds
        self._begun = time.monotonic()
        self._said = None

    def wait_for(self, missing, reason=""):
        """Says from time to time who is missing, and gives up in the end."""
        now = time.monotonic()
        if now > self._begun + self._seconds:
            raise InputError(
                f"`TF_CONFIG` names workers that did not come within {self._seconds:.0f} s: "
                f"{', '.join(missing)}{reason}. Start the same command on each, with its own "
                "`index`, and see that the addresses can be reached."
            )
        if self._said is None or now > self._said + _SECONDS_BETWEEN_LINES:
            self._said = now
            logger.info("waiting for worker %s%s", ", ".join(missing), reason)


def _receive(workers, deadline):
    """The first worker's part: takes calls until there is one of each, then sends all off."""
    greetings = {
        _greeting(workers._replace(index=index)): index
        for index in range(1, len(workers.addresses))
    }
    present = {}
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(_listen(workers, deadline))
        selector = stack.enter_context(selectors.DefaultSelector())
        selector.register(listener, selectors.EVENT_READ)
        while len(present) < len(greetings):
            deadline.wait_for(
                [f"{i} ({workers.addresses[i]})" for i in greetings.values() if i not in present]
            )
            for key, _ in selector.select(_PAUSE):
                if key.fileobj is listener:
                    caller = stack.enter_context(listener.accept()[0])
                    caller.settimeout(5)
                    selector.register(caller, selectors.EVENT_READ)
                    continue
                line = _read_line(key.fileobj)
                # A worker that ended while it waited has closed its call, and is missing again.
                present = {i: call for i, call in present.items() if call is not key.fileobj}
                if line in greetings:
                    present[greetings[line]] = key.fileobj
                    continue
                selector.unregister(key.fileobj)
                if line.startswith(_GREETING):
                    _send(key.fileobj, _OTHERS)
                key.fileobj.close()
        for call in present.values():
            _send(call, _GO)
        # They hang up first: an address whose own side hung up cannot be taken again at once.
        for call in present.values():
            _read_line(call)


def _call(workers, deadline):
    """The other workers' part: calls until the first one answers that all are there."""
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
                    deadline.wait_for(["0 to say that all are here"])
        except OSError as error:
            reason = f" ({error})"
        if answer == _GO:
            return
        if answer == _OTHERS:
            raise InputError(
                "`TF_CONFIG` should name the same workers on all of them. "
                f"Received: {', '.join(workers.addresses)}, and others on the first."
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
    """Reads a line; b"" if there is none yet (`patient`), anything else if the call has ended."""
    try:
        return call.recv(_LINE) or b"\n"
    except TimeoutError:
        return b"" if patient else b"\n"
    except OSError:
        return b"\n"


def _send(call, line):
    with contextlib.suppress(OSError):
        call.sendall(line)
