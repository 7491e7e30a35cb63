"""Patches: a folder's difference from its commit, and the ways to apply one."""

from __future__ import annotations

from lmgym.backends.sandbox import Sandbox

STRATEGIES = (  # in the order of the SWE-bench harness; the folder is restored in between
    "git apply --verbose {}",
    "git apply --verbose --3way {}",
    "git apply --verbose --reject {}",
    "patch --batch --fuzz=5 -p1 -i {}",
)


def apply(sandbox: Sandbox, patch: str) -> bool:
    """Apply a patch to the sandbox's folder by the first strategy that works; return False if none does."""
    path = "/tmp/model.patch"
    sandbox.write(path, patch.encode("utf-8", "replace"))
    for strategy in STRATEGIES:
        if sandbox.run(strategy.format(path)).code == 0:
            return True
        sandbox.run("git checkout -q -f HEAD -- . && git clean -fdq")
    return False


def difference(sandbox: Sandbox, base: str) -> str:
    """Return the unified diff between the commit `base` and the folder; "" where that cannot be read."""
    sandbox.kill()
    command = f"git add -A && git -c core.quotepath=off diff --cached --no-color --no-ext-diff --no-textconv {base} --"
    try:
        done = sandbox.run(command)
    except OSError:  # the folder is gone or closed
        return ""
    return done.text if done.code == 0 and not done.dropped else ""
