"""The lookup of a host name's addresses."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from ipaddress import ip_address
from typing import Final

import trio

from deskwire.engine.core.limits.fair_share import FairLimiter, present_tenant, thread_limiter
from deskwire.engine.webhooks.http.address import IPAddress, literal

Resolver = Callable[[str, int], Awaitable[Sequence[IPAddress]]]
"""Returns a host's addresses, best first. Raises ResolutionFailed, or OSError for what this machine lacks."""

SHORTAGES: Final = {
    errno.EMFILE: "file descriptor",
    errno.ENFILE: "file descriptor",
    errno.ENOMEM: "memory",
    errno.ENOBUFS: "memory",
}
"""The errors that say that this machine lacks something, with a word for it."""

_LOOKUPS: Final = 2
"""Threads that a resolver holds at most. One that waits for a dead name server can't be stopped, only left
behind; with a bound of its own for each endpoint it takes no thread from the others."""

_LOOKUPS_OF_ALL: Final = 8
"""Threads that a resolver for all projects holds at most."""

_LOCAL: Final = "localhost"


class ResolutionFailed(Exception):
    """A host has no address now; the text says why."""


class NoThread(OSError):
    """No thread could be started."""


class SystemResolver:
    """Asks the system, as `getaddrinfo` does; odd spellings of addresses (`0x7f.1`) become plain addresses.

    Args:
        shared: whether it works for all projects, so that none may have all of its threads.
    """

    def __init__(self, *, shared: bool = False) -> None:
        self._shared = shared
        self._turns = FairLimiter(_LOOKUPS_OF_ALL if shared else _LOOKUPS)

    async def __call__(self, host: str, port: int) -> Sequence[IPAddress]:
        """Return the addresses of `host`, an ASCII name or a literal.

        Raises ResolutionFailed, or OSError for what this machine lacks.

        Cancellation: the lookup's thread is left to end by itself.
        """
        address = literal(host)
        if address is not None:
            return (address,)
        ask = partial(socket.getaddrinfo, host.encode("ascii"), port, type=socket.SOCK_STREAM)
        try:
            entries = await trio.to_thread.run_sync(ask, abandon_on_cancel=True, limiter=self._place())
        except RuntimeError as error:  # Python's error for a thread that can't be started
            raise NoThread(str(error)) from error
        except OSError as error:
            if (shortage := _shortage(error)) is not None:
                raise shortage from error
            raise ResolutionFailed(f"host not found: {host} ({error.strerror or error})") from None
        except UnicodeError:
            raise ResolutionFailed(f"host not found: {host} is no valid name") from None
        return tuple(dict.fromkeys(ip_address(entry[4][0]) for entry in entries))

    def _place(self) -> trio.CapacityLimiter:
        return thread_limiter(self._turns, present_tenant() if self._shared else None)


async def spelled_addresses(host: str, _port: int) -> Sequence[IPAddress]:
    """Return the address that `host` spells in any form that systems take (`0x7f.1`); none for a name.

    A `Resolver` for when a proxy resolves names. A name under localhost is this machine everywhere (RFC 6761, 6.3).
    """
    await trio.lowlevel.checkpoint()
    bare = host.removesuffix(".").lower()
    if bare == _LOCAL or bare.endswith(f".{_LOCAL}"):
        return (ip_address("127.0.0.1"),)
    address = literal(bare)
    if address is not None:
        return (address,)
    try:
        return (ip_address(socket.inet_aton(bare)),)
    except OSError:
        return ()


def _shortage(error: OSError) -> OSError | None:
    """Return what a failed lookup lacked on this machine, as an error of its own; None if it failed otherwise.

    The system's library says no more than that it may go better next time.
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
