"""Host names and addresses of this machine, for servers that answer only requests addressed to them."""

from __future__ import annotations

from ipaddress import ip_address


def is_address(name: str) -> bool:
    """Return True for an IP address."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def in_address(host: str) -> str:
    """Return `host` as it is written in a URL: IPv6 addresses stand in brackets."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Return True if only this machine reaches `host`, an address or "localhost"."""
    return host == "localhost" or (is_address(host) and ip_address(host).is_loopback)


def is_wildcard(host: str) -> bool:
    """Return True if a server on `host` listens on all addresses of this machine."""
    return is_address(host) and ip_address(host).is_unspecified


def own_names(host: str, bound: str) -> set[str]:
    """Return the names, as in a URL, of a server started on `host` and bound to the address `bound`.

    Requests under other names come from web pages whose own name was pointed at this machine (DNS rebinding).
    """
    names = {in_address(host).lower(), in_address(bound)}
    return names | {"localhost"} if is_loopback(bound) else names
