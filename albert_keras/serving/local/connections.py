"""Connections of a local server: not too many, and none that lets the server wait for a request."""

import json

from uvicorn.protocols.http.h11_impl import H11Protocol


class LimitedConnection(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, with a limit of connections and deadlines, which it has not.

    Args:
        limits: Limits.
        **options: Of uvicorn.
    """

    def __init__(self, limits, **options):
        super().__init__(**options)
        self._limits, self._deadline, self._cut = limits, None, None

    def connection_made(self, transport):
        super().connection_made(transport)
        if len(self.connections) > self._limits.connections:
            self._answer(503, "Too many connections.")
            return
        self._expect_request()

    def connection_lost(self, exc):
        self._expect_nothing()
        if self._cut is not None:
            self._cut.cancel()
        super().connection_lost(exc)

    def data_received(self, data):
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._expect_nothing()
        elif self._deadline is None:
            self._expect_request()

    def on_response_complete(self):
        super().on_response_complete()
        if self._cut is not None:
            self._cut.cancel()
        self._cut = self.loop.call_later(self._limits.waiting_seconds, self._cut_unread)

    def send_400_response(self, msg):
        cycle = self.cycle
        if cycle is not None and cycle.response_started and not cycle.response_complete:
            self.transport.abort()  # another answer is on its way
            return
        self._answer(400, "This is no HTTP request that is taken here.")

    def _expect_request(self):
        seconds = self._limits.receiving_seconds
        late = f"The head of a request should have come within {seconds:g} seconds."
        self._deadline = self.loop.call_later(seconds, self._answer, 408, late)

    def _expect_nothing(self):
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _cut_unread(self):
        """Lets go an answer that the client does not read."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def _answer(self, status, message):
        """Writes an answer to no request, and closes."""
        if self.transport.is_closing():
            return
        content = json.dumps({"error": message})
        self.transport.write(
            f"HTTP/1.1 {status} Refused\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\nX-Content-Type-Options: nosniff\r\n"
            f"Connection: close\r\n\r\n{content}".encode()
        )
        self.transport.close()
