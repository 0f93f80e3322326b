"""The port, which is taken before anything else is loaded: a client that finds it closed may be away for long (ADR 38)."""

from __future__ import annotations

import errno
import socket
from typing import Final

from msgspec import Struct

_BACKLOG: Final = 65_535
"""The connections that may wait to be accepted: as many as the system allows (`net.core.somaxconn`)."""


class Port(Struct, frozen=True):
    """The sockets on which the service listens.

    Args:
        sockets: listening ones; whoever connects waits until they are served.
        outlives: whether somebody else holds them, too, so that the port stays open when this process has ended.
    """

    sockets: tuple[socket.socket, ...]
    outlives: bool = False


def take(host: str, port: int) -> Port:
    """Listen on every address of the host that this machine has a protocol for. Raises OSError."""
    sockets: list[socket.socket] = []
    unknown: OSError | None = None
    for family, _, _, _, address in socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    ):
        try:
            sockets.append(socket.create_server(address, family=family, backlog=_BACKLOG))
        except OSError as error:
            if error.errno != errno.EAFNOSUPPORT:
                for opened in sockets:
                    opened.close()
                raise
            unknown = error
    if unknown is not None and not sockets:
        raise unknown
    return Port(tuple(sockets))
