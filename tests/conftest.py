"""What the suite needs of the process that it runs in."""

from __future__ import annotations

import signal

from hypothesis import settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # begun in a shell's background: commands inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("suite", derandomize=True)  # the same examples in every run
settings.load_profile("suite")
