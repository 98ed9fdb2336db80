"""A connection to a local server that cannot keep the server waiting."""

import json

from uvicorn.protocols.http.h11_impl import H11Protocol

from albert_keras.serving.local.limits import Limits


class LimitedConnection(H11Protocol):
    """uvicorn's HTTP/1.1 connection with a limit on their number and with deadlines.

    uvicorn itself waits without limit for the head of a first request, and for a client that does
    not read its answer. If there are too many connections, a new one takes the place of the one
    that has waited longest for its client; it is refused only if none has waited long.
    """

    def __init__(self, limits: Limits, **options):
        super().__init__(**options)
        self._limits, self._head_deadline, self._answer_deadline = limits, None, None
        #: Time since when the client has had to send or to read something, if it has to.
        self._waiting_since = self.loop.time()

    def connection_made(self, transport):
        super().connection_made(transport)
        if not self._has_place():
            self._refuse(503, "Too many connections.")
            return
        self._start_head_deadline()

    def connection_lost(self, exc):
        self._cancel_head_deadline()
        if self._answer_deadline is not None:
            self._answer_deadline.cancel()
        super().connection_lost(exc)

    def data_received(self, data):
        if self.transport.is_closing():
            return
        cycle = self.cycle
        super().data_received(data)
        if self.cycle is not cycle:
            self._waiting_since = self.loop.time()  # for the body, if it is not complete
        if self.cycle is not None and not self.cycle.response_complete:
            self._cancel_head_deadline()
        elif self._head_deadline is None:
            self._start_head_deadline()

    def pause_writing(self):
        self._waiting_since = self.loop.time()
        super().pause_writing()

    def on_response_complete(self):
        self._waiting_since = self.loop.time()
        super().on_response_complete()
        if self._answer_deadline is not None:
            self._answer_deadline.cancel()
        seconds = self._limits.waiting_seconds
        self._answer_deadline = self.loop.call_later(seconds, self._abort_if_unread)

    def send_400_response(self, msg):
        cycle = self.cycle
        if cycle is not None and cycle.response_started and not cycle.response_complete:
            self.transport.abort()  # another answer is being sent
            return
        self._refuse(400, "This is not a valid HTTP request.")

    def _has_place(self):
        """Returns whether this new connection may stay; another one may have to yield to it."""
        others = [one for one in self.connections if one is not self and one.is_open]
        if len(others) < self._limits.connections:
            return True
        latest = self.loop.time() - self._limits.yielding_seconds
        waiting = [one for one in others if one.waits_for_client and one._waiting_since <= latest]
        if not waiting:
            return False
        min(waiting, key=lambda one: one._waiting_since).transport.abort()
        return True

    @property
    def is_open(self):
        """bool. Whether the connection is in use, be it only by an answer that is not read yet."""
        return not self.transport.is_closing() or self.transport.get_write_buffer_size() > 0

    @property
    def waits_for_client(self):
        """bool. Whether the client has to send a head or a body, or to read an answer."""
        cycle = self.cycle
        if cycle is None or cycle.response_complete or self.flow.write_paused:
            return True
        return cycle.more_body and not cycle.response_started

    def _start_head_deadline(self):
        seconds = self._limits.receiving_seconds
        message = f"The head of a request must arrive within {seconds:g} seconds."
        self._head_deadline = self.loop.call_later(seconds, self._refuse, 408, message)

    def _cancel_head_deadline(self):
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None

    def _abort_if_unread(self):
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def _refuse(self, status, message):
        """Sends an answer without a request and closes the connection."""
        if self.transport.is_closing():
            return
        content = json.dumps({"error": message})
        self.transport.write(
            f"HTTP/1.1 {status} Refused\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\nX-Content-Type-Options: nosniff\r\n"
            f"Connection: close\r\n\r\n{content}".encode()
        )
        self.transport.close()
