"""Sandboxes for programs that a policy writes: `open_sandbox` starts one, `images` makes what Docker starts from."""

from __future__ import annotations

from lmgym.backends.sandbox import images
from lmgym.backends.sandbox.limits import Box, Result, SandboxLimits
from lmgym.backends.sandbox.opening import open_sandbox
from lmgym.backends.sandbox.sandbox import Sandbox, SandboxSession

__all__ = ["Box", "Result", "Sandbox", "SandboxLimits", "SandboxSession", "images", "open_sandbox"]
