"""The listening sockets. They are opened before anything else is loaded, because a refused client may stay disconnected for long (ADR 38)."""

from __future__ import annotations

import errno
import socket
from typing import Final

from msgspec import Struct

_BACKLOG: Final = 65_535  # pending connections: as many as the system allows (`net.core.somaxconn`)


class Port(Struct, frozen=True):
    """The sockets on which the service listens.

    Args:
        sockets: listening sockets; clients that connect wait until they are served.
        outlives: whether another process also holds the sockets, so that the port stays open after this process.
    """

    sockets: tuple[socket.socket, ...]
    outlives: bool = False


def take(host: str, port: int) -> Port:
    """Listen on every address of the host with a supported protocol. Raises OSError."""
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
