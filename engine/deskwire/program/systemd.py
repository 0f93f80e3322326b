"""A service manager's sockets and notifications (sd_listen_fds(3), sd_notify(3)).

Sockets of the manager outlive the process, so clients that connect during a restart wait. systemd passes them through
environment variables and open file descriptors; other managers use the same protocol.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, MutableMapping
from typing import Final, Self

from msgspec import Struct

from deskwire.program.port import Port

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"
_FIRST: Final = 3  # the descriptor of the first socket: SD_LISTEN_FDS_START
_MOST: Final = 100
_OURS: Final = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


class HandedOverError(Exception):
    """Sockets that can't be served; the text names each with the reason."""


class ServiceManager(Struct, frozen=True):
    """The service manager that started the process.

    Args:
        port: the listening sockets of the manager, in order; None if the process opens its own.
        address: the socket for notifications; None without one.
        passed_over: the id of another process for which the sockets are meant, if any; they are left alone.
    """

    port: Port | None = None
    address: str | None = None
    passed_over: str = ""

    @classmethod
    def of(cls, environ: MutableMapping[str, str], pid: int) -> Self:
        """Read the manager's variables and remove them, so that child processes don't inherit them.

        Raises HandedOverError.
        """
        address = environ.pop("NOTIFY_SOCKET", None) or None
        handed_to, count, names = (environ.pop(name, "") for name in _OURS)
        if handed_to != str(pid):
            return cls(None, address, handed_to)
        return cls(_taken(count, names.split(":")), address)

    def tell(self, state: str) -> None:
        """Send a state to the manager, if it wants notifications. Raises OSError."""
        if self.address is not None:
            abstract = self.address.startswith("@")
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as client:
                client.connect("\0" + self.address[1:] if abstract else self.address)
                client.send(state.encode())


ALONE: Final = ServiceManager()  # no service manager: started by hand


def _taken(count: str, names: list[str]) -> Port | None:
    if not count.isdecimal() or int(count) > _MOST:
        raise HandedOverError(f"LISTEN_FDS must be a number up to {_MOST}, not {count!r}.")
    descriptors = range(_FIRST, _FIRST + int(count))
    named = {descriptor: f" ({name})" for descriptor, name in zip(descriptors, names, strict=False) if name}
    problems = [
        f"descriptor {descriptor}{named.get(descriptor, '')} {problem}"
        for descriptor in descriptors
        for problem in _problems(descriptor)
    ]
    if problems:
        raise HandedOverError(
            "These sockets were handed over and can't be served: " + "; ".join(problems) + "."
        )
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    sockets = tuple(socket.socket(fileno=descriptor) for descriptor in descriptors)
    return Port(sockets, outlives=True) if sockets else None


def _problems(descriptor: int) -> Iterator[str]:
    """Yield why the descriptor can't be served; it must be a listening TCP socket."""
    try:
        copy = socket.socket(fileno=os.dup(descriptor))
    except OSError as error:
        yield f"is not a socket: {error.strerror}"
        return
    with copy:
        if copy.family not in (socket.AF_INET, socket.AF_INET6) or copy.type != socket.SOCK_STREAM:
            yield "is not a TCP socket, the only kind that can be served (ListenStream= with a port)"
        elif not copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            yield "does not listen: it is a single connection (Accept= must be no)"
