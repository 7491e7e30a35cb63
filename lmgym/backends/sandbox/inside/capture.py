"""Output of limited length."""

from __future__ import annotations


class Capture:
    """The first and the last bytes of a stream."""

    def __init__(self, limit: int) -> None:
        self.half = max(limit // 2, 1)
        self.head, self.tail, self.dropped = bytearray(), bytearray(), 0

    def feed(self, data: bytes) -> None:
        """Take some bytes."""
        room = self.half - len(self.head)
        if room > 0:
            self.head += data[:room]
            data = data[room:]
        self.tail += data
        if len(self.tail) > 2 * self.half:
            self._cut()

    def take(self) -> tuple[bytes, int]:
        """Return what is kept and how many bytes were dropped after the first half, and start anew."""
        if len(self.tail) > self.half:
            self._cut()
        taken = bytes(self.head + self.tail), self.dropped
        self.head, self.tail, self.dropped = bytearray(), bytearray(), 0
        return taken

    def _cut(self) -> None:
        surplus = len(self.tail) - self.half
        del self.tail[:surplus]
        self.dropped += surplus
