"""The system calls that a sandbox may make, as a filter for bubblewrap and a profile for Docker.

The list is Docker's default one without ptrace, process_vm_*, io_uring, fanotify, name_to_handle_at and file systems'
own calls. Beyond it: four families of sockets only (a virtual machine's host answers on AF_VSOCK, which no network
namespace holds back), no ioctl that types into a terminal, and limits and priorities of the calling process only: the
agent is of the same user, and a program that took its descriptors or its time would end its own sandbox.
"""

from __future__ import annotations

import ctypes
import errno
import os
from ctypes.util import find_library
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from lmgym.errors import MissingExtra

ALLOW, ERRNO = 0x7FFF0000, 0x00050000  # actions of libseccomp
EQUAL, MASKED = 4, 7  # comparisons of libseccomp
NAMESPACES = 0x7E020000  # clone: CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET
FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK
PERSONALITIES = (0, 8, 0x20000, 0x20008, 0xFFFFFFFF)
OWN = ("prlimit64", "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler")  # 0: the caller
PRIO_PROCESS, IOPRIO_WHO_PROCESS = 0, 1
TIOCSTI, TIOCLINUX = 0x5412, 0x541C  # ioctl: type into a terminal


@dataclass(frozen=True)
class Condition:
    """A condition on one argument of a system call: `(argument & mask) == value` where there is a mask."""

    argument: int
    operator: int
    value: int
    mask: int = 0


def _conditional() -> list[tuple[str, tuple[Condition, ...]]]:
    """Return the calls that are allowed for some arguments, with the conditions that these must meet together."""
    return [
        ("clone", (Condition(0, MASKED, 0, NAMESPACES),)),
        *(("socket", (Condition(0, EQUAL, family),)) for family in FAMILIES),
        *(("personality", (Condition(0, EQUAL, value),)) for value in PERSONALITIES),
        *(("ioctl", (comparison,)) for comparison in _neither(1, TIOCSTI, TIOCLINUX)),
        *((name, (Condition(0, EQUAL, 0),)) for name in OWN),
        ("setpriority", (Condition(0, EQUAL, PRIO_PROCESS), Condition(1, EQUAL, 0))),
        ("ioprio_set", (Condition(0, EQUAL, IOPRIO_WHO_PROCESS), Condition(1, EQUAL, 0))),
    ]


def _neither(argument: int, first: int, second: int) -> list[Condition]:
    """Return comparisons of which one holds unless the lower 32 bits of an argument are `first` or `second`.

    The kernel reads 32 bits of an ioctl's number: a comparison of all 64 would let 0x100005412 pass.
    """
    differing = [bit for bit in range(32) if (first ^ second) >> bit & 1]
    mask = sum(1 << bit for bit in differing)
    patterns = {
        sum((number >> place & 1) << bit for place, bit in enumerate(differing))
        for number in range(2 ** len(differing))
    }
    return [
        *(Condition(argument, MASKED, ~first & 1 << bit, 1 << bit) for bit in range(32) if bit not in differing),
        *(Condition(argument, MASKED, pattern, mask) for pattern in sorted(patterns - {first & mask, second & mask})),
    ]


def allowed() -> list[str]:
    """Return the names of the calls that are allowed for all arguments."""
    return (files(__package__) / "syscalls.txt").read_text().split()


class _Argument(ctypes.Structure):
    """A `struct scmp_arg_cmp`."""

    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    )


def _library() -> Any:
    name = find_library("seccomp") or "libseccomp.so.2"
    try:
        library = ctypes.CDLL(name, use_errno=True)
    except OSError as error:
        raise MissingExtra("sandboxes need libseccomp: apt-get install libseccomp2") from error
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_rule_add_array.argtypes = [
        ctypes.c_void_p,
        ctypes.c_uint32,
        ctypes.c_int,
        ctypes.c_uint,
        ctypes.POINTER(_Argument),
    ]
    library.seccomp_export_bpf.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.seccomp_release.argtypes = [ctypes.c_void_p]
    return library


def profile() -> dict[str, Any]:
    """Return the filter as a profile for Docker."""
    rules: list[dict[str, Any]] = [{"names": allowed(), "action": "SCMP_ACT_ALLOW"}]
    for name, conditions in _conditional():
        rules.append({"names": [name], "action": "SCMP_ACT_ALLOW", "args": [_argument(each) for each in conditions]})
    rules.append({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": errno.ENOSYS})
    return {"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": errno.EPERM, "syscalls": rules}


def _argument(condition: Condition) -> dict[str, Any]:
    """Return a condition as Docker's profile writes it."""
    masked = condition.operator == MASKED
    return {
        "index": condition.argument,
        "value": condition.mask if masked else condition.value,
        "valueTwo": condition.value if masked else 0,
        "op": "SCMP_CMP_MASKED_EQ" if masked else "SCMP_CMP_EQ",
    }


@cache
def program() -> bytes:
    """Return the filter as a BPF program for this machine's architecture. Raises MissingExtra without libseccomp."""
    library = _library()
    context = library.seccomp_init(ERRNO | errno.EPERM)
    try:
        for name in allowed():
            _add(library, context, ALLOW, name)
        for name, conditions in _conditional():
            _add(library, context, ALLOW, name, *conditions)
        _add(library, context, ERRNO | errno.ENOSYS, "clone3")  # the C library falls back to clone
        target = os.memfd_create("seccomp")
        try:
            library.seccomp_export_bpf(context, target)
            return os.pread(target, 1 << 20, 0)
        finally:
            os.close(target)
    finally:
        library.seccomp_release(context)


def _add(library: Any, context: int, action: int, name: str, *conditions: Condition) -> None:
    number = library.seccomp_syscall_resolve_name(name.encode())
    if number < 0:  # unknown to this architecture or library
        return
    rules = (_Argument * max(1, len(conditions)))()
    for place, each in enumerate(conditions):
        values = (each.mask, each.value) if each.mask else (each.value, 0)
        rules[place] = _Argument(each.argument, each.operator, *values)
    code = library.seccomp_rule_add_array(context, action, number, len(conditions), rules)
    assert code == 0, f"libseccomp refuses a rule for {name}: {os.strerror(-code)}"
