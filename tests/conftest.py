"""What the suite needs of the process that it runs in."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # begun in a shell's background: commands inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)
