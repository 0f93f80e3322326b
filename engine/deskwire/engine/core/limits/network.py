"""The network that an address belongs to: addresses that are given out as one are counted as one.

An IPv4 address is one party's. Of IPv6 a customer holds a whole /64 at least (RFC 4291 2.5.4, RFC 6177), whose
addresses cost nothing, so that a bound for each of them would be none.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

PREFIX: Final = 64
_OWN: Final = frozenset({"127.0.0.1", "::1"})


@lru_cache(maxsize=1024)  # a client has the same one in each of its calls
def network_of(address: str | None) -> str:
    """Return the network that an address stands for in a count.

    Args:
        address: as a connection or a proxy names it; perhaps none.

    Returns an IPv4 address as it is, also one that is mapped into IPv6 (RFC 4291 2.5.5.2); of any other IPv6 address
    the /64; what is no address as it is, so that all who have none share one.
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
    """Return the network that a client's failures are counted for; None for this machine's own address, and for none.

    127.0.0.1 and ::1 are a proxy's or a local script's: everybody's calls may come from there.
    """
    try:
        known = ip_address((address or "").strip().partition("%")[0])
    except ValueError:
        return None
    mapped = known.ipv4_mapped if isinstance(known, IPv6Address) else None
    return None if str(mapped or known) in _OWN else network_of(address)
