"""Sandboxes for programs that a policy writes: `open_sandbox` starts one."""

from __future__ import annotations

from lmgym.backends.sandbox.limits import Box, Result, SandboxLimits
from lmgym.backends.sandbox.opening import open_sandbox
from lmgym.backends.sandbox.sandbox import Sandbox, SandboxSession

__all__ = ["Box", "SandboxLimits", "Result", "Sandbox", "SandboxSession", "open_sandbox"]
