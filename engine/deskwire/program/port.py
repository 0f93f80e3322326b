"""The listening sockets. They are opened before anything else is loaded, because a refused client may stay disconnected for long (ADR 38)."""

from __future__ import annotations

import errno
import socket
from typing import Any, Final

from msgspec import Struct

_BACKLOG: Final = 65_535  # pending connections: as many as the system allows (`net.core.somaxconn`)
_WRONG_HOST: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT, errno.EINVAL)


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
    for family, address in _addresses(host, port):
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


def _addresses(host: str, port: int) -> list[tuple[socket.AddressFamily, Any]]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except UnicodeError as error:  # for example an empty label, as in "a..b"
        raise socket.gaierror(socket.EAI_NONAME, "not the name of a host") from error
    return [(family, address) for family, _, _, _, address in found]


def advice(error: OSError) -> str:
    """Return what to change if a port could not be taken because of this error."""
    if isinstance(error, socket.gaierror) or error.errno in _WRONG_HOST:
        return "Set --host (DESKWIRE_HOST) to an address of this machine, or to 0.0.0.0 or :: for all."
    if error.errno == errno.EACCES:
        return "Try a --port (DESKWIRE_PORT) of 1024 or above: lower ones need a privilege."
    return "Try another --port (DESKWIRE_PORT)."
