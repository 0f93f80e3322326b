"""From a host name to the addresses that may be dialled."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from ipaddress import ip_address
from typing import Final

import trio

from deskwire.engine.core.limits.fair_share import FairPlaces, lent, present_tenant
from deskwire.engine.webhooks.http.address import IPAddress, literal
from deskwire.engine.webhooks.http.shortage import NoThread, name_lookup_lacked

Resolver = Callable[[str, int], Awaitable[Sequence[IPAddress]]]
"""Gives a host's addresses, best first. Raises ResolutionFailed."""

_LOOKUPS: Final = 2
"""Threads a resolver holds at most. One that waits for a dead name server can't be stopped, only left
behind; with a bound of its own for each endpoint it takes no thread from anybody else."""

_LOOKUPS_OF_ALL: Final = 8
"""The same of one that all projects share."""

_LOCAL: Final = "localhost"


class ResolutionFailed(Exception):
    """A host has no address now; the text says why."""


class SystemResolver:
    """Asks the system, as `getaddrinfo` does; odd spellings of addresses (`0x7f.1`) become what they mean.

    Args:
        shared: whether it works for all projects, so that none may have all of its threads.
    """

    def __init__(self, *, shared: bool = False) -> None:
        self._shared = shared
        self._turns = FairPlaces(_LOOKUPS_OF_ALL if shared else _LOOKUPS)

    async def __call__(self, host: str, port: int) -> Sequence[IPAddress]:
        """The addresses of `host`, an ASCII name or a literal.

        Raises ResolutionFailed, or OSError for what this machine lacks.

        Cancellation: the lookup's thread is left to end by itself.
        """
        given = literal(host)
        if given is not None:
            return (given,)
        ask = partial(socket.getaddrinfo, host.encode("ascii"), port, type=socket.SOCK_STREAM)
        try:
            found = await trio.to_thread.run_sync(ask, abandon_on_cancel=True, limiter=self._place())
        except RuntimeError as error:  # as Python says it
            raise NoThread(str(error)) from error
        except OSError as error:
            if (shortage := name_lookup_lacked(error)) is not None:
                raise shortage from error
            raise ResolutionFailed(f"host not found: {host} ({error.strerror or error})") from None
        except UnicodeError:
            raise ResolutionFailed(f"host not found: {host} is no valid name") from None
        return tuple(dict.fromkeys(ip_address(entry[4][0]) for entry in found))

    def _place(self) -> trio.CapacityLimiter:
        return lent(self._turns, present_tenant() if self._shared else None)


async def spelled_addresses(host: str, _port: int) -> Sequence[IPAddress]:
    """The address that `host` itself is, in any spelling that systems take (`0x7f.1`); none for a name.

    A `Resolver` for when somebody else resolves names. What is called localhost is, everywhere (RFC 6761, 6.3).
    """
    await trio.lowlevel.checkpoint()
    bare = host.removesuffix(".").lower()
    if bare == _LOCAL or bare.endswith(f".{_LOCAL}"):
        return (ip_address("127.0.0.1"),)
    given = literal(bare)
    if given is not None:
        return (given,)
    try:
        return (ip_address(socket.inet_aton(bare)),)
    except OSError:
        return ()
