"""The policy on the addresses that webhooks may go to: public ones, and those that the operator allows (contract 6.2.2).

An IPv6 address may carry an IPv4 address that is dialled in the end (mapped, NAT64, 6to4, Teredo): that
one is judged, too. Names are never judged, only the addresses that they resolve to (decisions 6).
"""

from __future__ import annotations

import ipaddress
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

from msgspec import Struct

IPAddress = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_CGNAT: Final = IPv4Network("100.64.0.0/10")
_RELAY: Final = IPv4Network("192.88.99.0/24")
_UNICAST: Final = IPv6Network("2000::/3")
_DOCUMENTATION: Final = IPv6Network("3fff::/20")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL: Final = IPv6Network("64:ff9b:1::/48")
_V4_MASK: Final = 0xFFFFFFFF


class Policy(Struct, frozen=True):
    """The operator's policy on addresses that are not public.

    Args:
        allow_private: whether every address is allowed, and plain http; for development.
        allow: networks whose addresses are allowed.
    """

    allow_private: bool = False
    allow: tuple[Network, ...] = ()

    def refusal(self, address: IPAddress) -> str | None:
        """Return why webhooks may not go to `address`, such as "10.0.0.1 is private"; None if they may."""
        if self.allow_private or any(address in network for network in self.allow):
            return None
        if isinstance(address, IPv4Address):
            flaw = _flaw_v4(address)
            return flaw and f"{address} is {flaw}"
        return self._refusal_v6(address)

    def _refusal_v6(self, address: IPv6Address) -> str | None:
        for form, inner in _embedded(address):
            reason = self.refusal(inner)
            if reason is not None:
                return f"{address} is {form} address: {reason}"
        if address.ipv4_mapped is not None or address in _NAT64:
            return None  # only the inner address is dialled
        if address.sixtofour is not None:
            return None  # the inner address decides: newer versions of Python call 6to4 itself not global
        flaw = _flaw_v6(address)
        return flaw and f"{address} is {flaw}"


def _embedded(address: IPv6Address) -> list[tuple[str, IPv4Address]]:
    inner_addresses = []
    if address.ipv4_mapped is not None:
        inner_addresses.append(("an IPv4-mapped", address.ipv4_mapped))
    if address in _NAT64 or address in _NAT64_LOCAL:
        inner_addresses.append(("a NAT64", IPv4Address(int(address) & _V4_MASK)))
    if address.sixtofour is not None:
        inner_addresses.append(("a 6to4", address.sixtofour))
    if address.teredo is not None:
        inner_addresses.extend(("a Teredo", inner) for inner in address.teredo)
    return inner_addresses


def _flaw_v4(address: IPv4Address) -> str | None:
    if address in _CGNAT:
        return "shared address space (CGNAT)"
    if address in _RELAY:
        return "a retired 6to4 relay"
    return _flaw(address)


def _flaw_v6(address: IPv6Address) -> str | None:
    """Return the flaw of an IPv6 address; outside 2000::/3 none is given out for unicast (RFC 4291, IANA)."""
    if address in _NAT64_LOCAL:
        return "a local NAT64 address"
    if address.is_site_local:
        return "site-local"
    flaw = _flaw(address)
    if flaw is None and (address not in _UNICAST or address in _DOCUMENTATION):
        return "not a public address"
    return flaw


def _flaw(address: IPAddress) -> str | None:
    if address.is_unspecified:
        return "unspecified"
    if address.is_loopback:
        return "loopback"
    if address.is_link_local:
        return "link-local"
    if address.is_multicast:
        return "multicast"
    if address.is_reserved:
        return "reserved"
    if address.is_global:
        return None
    return "private" if address.is_private else "not a public address"


def literal(host: str) -> IPAddress | None:
    """Return the address that `host` spells in the usual form; None for names and for odd spellings."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
