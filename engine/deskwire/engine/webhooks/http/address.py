"""Address policy and name resolution of webhook receivers (contract 6.2.2).

Webhooks may go to public addresses and to networks that the operator allows. An IPv6 address can embed an
IPv4 address that is the real destination (mapped, NAT64, 6to4, Teredo), so the embedded address is checked
too. The policy never checks names, only the addresses that they resolve to (decisions 6).
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Final

import trio
from msgspec import Struct

from deskwire.engine.core.limits.fair_share import FairLimiter, present_tenant, thread_limiter

IPAddress = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_CGNAT: Final = IPv4Network("100.64.0.0/10")
_RELAY: Final = IPv4Network("192.88.99.0/24")
_UNICAST: Final = IPv6Network("2000::/3")
_DOCUMENTATION: Final = IPv6Network("3fff::/20")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL: Final = IPv6Network("64:ff9b:1::/48")
_V4_MASK: Final = 0xFFFFFFFF


class AddressPolicy(Struct, frozen=True):
    """The operator's policy for addresses that are not public.

    Args:
        allow_private: whether to allow all addresses, and plain http; for development.
        allow: allowed networks.
    """

    allow_private: bool = False
    allow: tuple[Network, ...] = ()

    def refusal(self, address: IPAddress) -> str | None:
        """Return why webhooks may not go to `address`; None if they may.

        For example "10.0.0.1 is private".
        """
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
            return None  # the inner address decides; newer Python versions call every 6to4 address not global
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
    """Return why an IPv6 address is not public.

    All public unicast addresses are in 2000::/3 (RFC 4291, IANA).
    """
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


def parse_address(host: str) -> IPAddress | None:
    """Return the address that `host` spells in standard form; None for other text."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


# Returns a host's addresses, best first. Raises ResolutionFailed, or OSError if this machine lacks a
# resource.
Resolver = Callable[[str, int], Awaitable[Sequence[IPAddress]]]

# Errors that mean that this machine lacks a resource, with the resource.
SHORTAGES: Final = {
    errno.EMFILE: "file descriptor",
    errno.ENFILE: "file descriptor",
    errno.ENOMEM: "memory",
    errno.ENOBUFS: "memory",
}

# Threads of one resolver. A thread that waits for a dead name server can't be stopped, only abandoned. A
# limit for each endpoint keeps the threads of the others free.
_THREADS_MAX: Final = 2

# Threads of a resolver shared by all projects.
_SHARED_THREADS_MAX: Final = 8

_LOCALHOST: Final = "localhost"


class ResolutionFailed(Exception):
    """A host has no address now; the message explains why."""


class ThreadUnavailable(OSError):
    """No thread could be started."""


class SystemResolver:
    """Resolves names with `getaddrinfo`.

    Unusual spellings of addresses (`0x7f.1`) become plain addresses.

    Args:
        shared: whether all projects share it. Each project then gets a fair share of its threads.
    """

    def __init__(self, *, shared: bool = False) -> None:
        self._shared = shared
        self._thread_slots = FairLimiter(_SHARED_THREADS_MAX if shared else _THREADS_MAX)

    async def __call__(self, host: str, port: int) -> Sequence[IPAddress]:
        """Return the addresses of `host`, an ASCII name or a literal.

        Raises ResolutionFailed, or OSError if this machine lacks a resource.

        Cancellation: the lookup's thread is abandoned.
        """
        address = parse_address(host)
        if address is not None:
            return (address,)
        ask = partial(socket.getaddrinfo, host.encode("ascii"), port, type=socket.SOCK_STREAM)
        try:
            entries = await trio.to_thread.run_sync(ask, abandon_on_cancel=True, limiter=self._limiter())
        except RuntimeError as error:  # Python's error for a thread that can't be started
            raise ThreadUnavailable(str(error)) from error
        except OSError as error:
            if (shortage := _shortage(error)) is not None:
                raise shortage from error
            raise ResolutionFailed(f"host not found: {host} ({error.strerror or error})") from None
        except UnicodeError:
            raise ResolutionFailed(f"host not found: {host} is no valid name") from None
        return tuple(dict.fromkeys(ip_address(entry[4][0]) for entry in entries))

    def _limiter(self) -> trio.CapacityLimiter:
        return thread_limiter(self._thread_slots, present_tenant() if self._shared else None)


async def literal_addresses(host: str, _port: int) -> Sequence[IPAddress]:
    """Return the address that `host` spells in any accepted form; empty for a name.

    Accepted forms are those of the system (`0x7f.1`). This is a `Resolver` for use with a proxy, which
    resolves names itself. Names under localhost always mean this machine (RFC 6761, 6.3).
    """
    await trio.lowlevel.checkpoint()
    bare = host.removesuffix(".").lower()
    if bare == _LOCALHOST or bare.endswith(f".{_LOCALHOST}"):
        return (ip_address("127.0.0.1"),)
    address = parse_address(bare)
    if address is not None:
        return (address,)
    try:
        return (ip_address(socket.inet_aton(bare)),)
    except OSError:
        return ()


def _shortage(error: OSError) -> OSError | None:
    """Return which resource a failed lookup lacked, as an OSError; None otherwise.

    The system's resolver reports a shortage only as a temporary failure, so a duplicated file descriptor
    tests for one.
    """
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_MEMORY:
        return OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
    if not isinstance(error, socket.gaierror):
        return error if error.errno in SHORTAGES else None
    try:
        os.close(os.dup(2))
    except OSError as none_left:
        return none_left
    return None


class AddressRefused(Exception):
    """A host has an address that webhooks may not go to; the message is the reason."""


def check_addresses(policy: AddressPolicy, addresses: Iterable[IPAddress]) -> None:
    """Raise AddressRefused if the policy refuses one of the addresses."""
    for address in addresses:
        refusal = policy.refusal(address)
        if refusal is not None:
            raise AddressRefused(refusal)
