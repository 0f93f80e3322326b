"""The client's address of a request when proxies stand in between (ADR 25).

`X-Forwarded-For` is believed as far as it was written by proxies that the operator trusts: read from its end, the
first address that is none of theirs is the client's. Whatever a client wrote itself stands before that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


def client_address(peer: str | None, forwarded_for: Sequence[str], trusted: Sequence[Network]) -> str | None:
    """Return the address of whoever made the request.

    Args:
        peer: address of the connection's other end, None if there is none.
        forwarded_for: the values of `X-Forwarded-For`, in the order of the headers.
        trusted: networks of the proxies.

    Returns the last trusted proxy's own where it does not say whom it had the request from.
    """
    if not (trusted and forwarded_for):
        return _normal(peer)
    nearest = _address(peer or "")
    if nearest is None:
        return peer
    hops = [hop for value in forwarded_for for hop in value.split(",")]
    while hops and is_trusted(nearest, trusted):
        further = _address(hops.pop())
        if further is None:
            break
        nearest = further
    return str(nearest)


@lru_cache(maxsize=1024)  # a client has the same one in each of its calls
def _normal(peer: str | None) -> str | None:
    """Write an address as it is written everywhere; None, or what is none, stays as it is."""
    address = _address(peer or "")
    return peer if address is None else str(address)


def is_trusted(address: Address | str | None, trusted: Sequence[Network]) -> bool:
    """Tell whether an address is that of a trusted proxy."""
    known = _address(address or "") if isinstance(address, str | None) else address
    return known is not None and any(known in network for network in trusted)


@lru_cache(maxsize=1024)  # a client has the same one in each of its calls
def _address(text: str) -> Address | None:
    """Read an address as proxies write it: perhaps in brackets, perhaps with a port; IPv4 whichever way it is put."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address
