"""The network of a client address, by which rate limits count clients.

An IPv4 address counts alone. Of IPv6 a customer gets at least a /64 (RFC 4291 2.5.4, RFC 6177) with addresses for free, so a
limit per IPv6 address would limit nothing.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

PREFIX: Final = 64
_OWN: Final = frozenset({"127.0.0.1", "::1"})


@lru_cache(maxsize=1024)  # each call of a client asks for the same address
def network_of(address: str | None) -> str:
    """Return the network that counts for an address.

    Args:
        address: text from a connection or a proxy's header, or None.

    Returns the address itself for IPv4, even if it is mapped into IPv6 (RFC 4291 2.5.5.2), and the /64 for other IPv6
    addresses. A text that is not an address is returned unchanged, so that all clients without an address share one count.
    """
    text = (address or "").strip()
    try:
        known = ip_address(text.partition("%")[0])
    except ValueError:
        return text
    if isinstance(known, IPv6Address):
        known = known.ipv4_mapped or known
    return str(IPv6Network((known, PREFIX), strict=False) if isinstance(known, IPv6Address) else known)


@lru_cache(maxsize=1024)  # as above
def remote_network(address: str | None) -> str | None:
    """Return the network by which a client's failures are counted.

    None for loopback, and without an address.

    127.0.0.1 and ::1 are the address of a local proxy or script, so calls of any client may come from there.
    """
    try:
        known = ip_address((address or "").strip().partition("%")[0])
    except ValueError:
        return None
    mapped = known.ipv4_mapped if isinstance(known, IPv6Address) else None
    return None if str(mapped or known) in _OWN else network_of(address)
