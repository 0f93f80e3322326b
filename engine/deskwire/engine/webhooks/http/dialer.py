"""The dialling of a receiver: public addresses only, whatever its name resolves to at the moment.

Each connection resolves its host anew, judges every address, and dials exactly those that were judged: a
name that changes its meaning between check and connection (DNS rebinding) gains nothing (decisions 6).
"""

from __future__ import annotations

import socket
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from typing import Final, Protocol

import trio

from deskwire.engine.core.http1 import Header
from deskwire.engine.webhooks.http.address import IPAddress, Policy
from deskwire.engine.webhooks.http.resolver import Resolver
from deskwire.engine.webhooks.http.streams import direct
from deskwire.engine.webhooks.target import Target


class AddressRefused(Exception):
    """A host is or has an address that webhooks may not go to; the text is the reason."""


class Route(Protocol):
    """A way of making connections to receivers: straight, or through a proxy."""

    @property
    def stage(self) -> str:
        """The one at fault if `reach` does not end, such as "proxy: "; "" for the receiver."""

    async def reach(self, target: Target) -> trio.abc.Stream:
        """Return a stream that ends at the target, still without the target's own TLS.

        Raises one of `failure.WIRE_ERRORS`.
        """

    def form(self, target: Target) -> tuple[bytes, tuple[Header, ...]]:
        """Return the request target for the first line, and headers for a proxy in between."""


class Dialer:
    """The straight way to a receiver, under a policy.

    Args:
        policy: says which addresses may be dialled.
        resolver: asked once for each connection.
    """

    stage: Final = ""

    def __init__(self, policy: Policy, resolver: Resolver) -> None:
        self._policy = policy
        self._resolver = resolver

    async def reach(self, target: Target) -> trio.abc.Stream:
        """Return a connection to the first of the host's addresses that takes one.

        Raises:
            AddressRefused: one of the addresses is not allowed; none is dialled then.
            ResolutionFailed: there is no address.
            OSError: the last address did not take it.
        """
        addresses = await self._resolver(target.host, target.port)
        judge(self._policy, addresses)
        return await dial_first(addresses, target.port)

    def form(self, target: Target) -> tuple[bytes, tuple[Header, ...]]:
        """Return the path, and no headers; see `Route.form`."""
        return target.path, ()


def judge(policy: Policy, addresses: Iterable[IPAddress]) -> None:
    """Raise AddressRefused if the policy refuses one of them."""
    for address in addresses:
        refusal = policy.refusal(address)
        if refusal is not None:
            raise AddressRefused(refusal)


async def dial_first(addresses: Sequence[IPAddress], port: int) -> trio.abc.Stream:
    """Dial in order; each address but the last gets its share of the time that is left. Raises OSError."""
    for left in range(len(addresses), 1, -1):
        now = trio.current_time()
        share_s = (trio.current_effective_deadline() - now) / left
        with trio.move_on_after(share_s):
            try:
                return await _dial(addresses[len(addresses) - left], port)
            except OSError:
                continue
    return await _dial(addresses[-1], port)


async def _dial(address: IPAddress, port: int) -> trio.abc.Stream:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    sock = trio.socket.socket(family, socket.SOCK_STREAM)
    with ExitStack() as undo:
        undo.callback(sock.close)
        await sock.connect((str(address), port))
        undo.pop_all()
    return direct(trio.SocketStream(sock))
