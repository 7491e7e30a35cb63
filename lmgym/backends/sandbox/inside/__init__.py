"""The agent that runs inside a sandbox, and the command that starts it there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files

from lmgym.backends.sandbox.limits import Box

HOME = "/home/agent"
MASKED = (  # files of /proc that tell of the host
    "config.gz",
    "interrupts",
    "iomem",
    "ioports",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "kmsg",
    "kpagecgroup",
    "kpagecount",
    "kpageflags",
    "latency_stats",
    "pagetypeinfo",
    "sched_debug",
    "slabinfo",
    "timer_list",
    "timer_stats",
    "vmallocinfo",
)
MODULES = ("capture", "archive", "programs", "loop", "agent")  # in the order of their imports
BOOT = """
import json, sys, types
for name, text in json.loads(sys.argv[2]).items():
    above = name.split('.')
    for depth in range(1, len(above) + 1):
        sys.modules.setdefault('.'.join(above[:depth]), types.ModuleType('.'.join(above[:depth])))
    exec(compile(text, name, 'exec'), sys.modules[name].__dict__)
sys.modules[name].main()
"""


def writable(box: Box) -> list[str]:
    """Return the folders that programs may write to; of an image, where that is everything, those that are saved."""
    return [box.folder, "/tmp", "/dev/shm"] if box.image else [box.folder, HOME, "/tmp", "/dev/shm"]


def environment(box: Box) -> dict[str, str]:
    """Return the variables of every program inside."""
    if box.image:
        return {"LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb", "PYTHONHASHSEED": "0", **box.environment}
    return {
        "PATH": "/opt/python/bin:/usr/local/bin:/usr/bin:/bin",
        "HOME": HOME,
        "USER": "agent",
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "PYTHONHASHSEED": "0",
        **box.environment,
    }


def command(box: Box, python: str, *, processes: int | None = None, groups: Sequence[int] = ()) -> list[str]:
    """Return the command that starts the agent.

    `processes` is the limit of its user, if it shares that with nobody; `groups` are descriptors of the files
    cgroup.procs of the groups that its programs join. The agent itself stays outside, so that programs short of memory
    are killed before it, whatever they say of themselves.
    """
    settings = {
        "writable": writable(box),
        "environment": environment(box),
        "inherit": bool(box.image),
        "processes": processes,
        "groups": list(groups),
        "disk": box.limits.disk,
    }
    package = __name__
    sources = {f"{package}.{name}": (files(package) / f"{name}.py").read_text() for name in MODULES}
    return [python, "-I", "-S", "-c", BOOT, json.dumps(settings), json.dumps(sources)]


def accounts() -> dict[str, str]:
    """Return /etc/passwd and /etc/group."""
    return {
        "passwd": f"root:x:0:0:root:/root:/usr/sbin/nologin\nagent:x:1000:1000:agent:{HOME}:/bin/bash\n",
        "group": "root:x:0:\nagent:x:1000:\n",
    }
