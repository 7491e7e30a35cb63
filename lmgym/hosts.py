"""Which names lead to this machine: what servers on loopback are asked for by, and by nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import ip_address


def is_address(name: str) -> bool:
    """Whether a name is a number."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def in_address(host: str) -> str:
    """`host` as it stands in an address."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches `host`, a number or "localhost"."""
    return host == "localhost" or (is_address(host) and ip_address(host).is_loopback)


def knows(asked: str, *, host: str, bound: str, port: int, names: Iterable[str] = ()) -> bool:
    """Whether `asked`, a request's Host, is the server on `host`, so that no name of a stranger's leads a browser here.

    `bound` is the number that the server listens on. Where it is every address, any of them will do, but still no name,
    unless it is one of `names`: these the server has elsewhere, under any port.
    """
    if asked.lower() in names or asked.lower().rpartition(":")[0] in names:
        return True
    name, _, asked_port = asked.rpartition(":") if re.search(r":\d+$", asked) else (asked, "", "80")  # HTTP's own
    if asked_port != str(port):
        return False
    if ip_address(bound).is_unspecified:
        return is_address(name.strip("[]"))
    return name in (in_address(host), in_address(bound)) or (name == "localhost" and ip_address(bound).is_loopback)
