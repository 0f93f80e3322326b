"""A service manager's sockets, and the states that it is told (sd_listen_fds(3), sd_notify(3)).

Listening sockets that outlive the process keep the port open over a restart: who connects meanwhile waits. systemd's
protocol for that is environment variables and open file descriptors, and other managers speak it, too.
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
_FIRST: Final = 3
"""The descriptor of the first socket: SD_LISTEN_FDS_START."""
_MOST: Final = 100
_OURS: Final = ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES")


class HandedOverError(Exception):
    """Sockets that can't be served; the text names each with what is wrong with it."""


class ServiceManager(Struct, frozen=True):
    """The service manager that has started the process.

    Args:
        port: the listening sockets that it handed over, in its order; None if the process takes its own.
        address: where it wants to be told of the state; None if it does not.
        passed_over: the id of the process that it handed sockets to, if that is not this one; these are left alone.
    """

    port: Port | None = None
    address: str | None = None
    passed_over: str = ""

    @classmethod
    def of(cls, environ: MutableMapping[str, str], pid: int) -> Self:
        """Take what the manager left in the environment, and remove it: it is for this process alone.

        Raises HandedOverError.
        """
        address = environ.pop("NOTIFY_SOCKET", None) or None
        handed_to, count, names = (environ.pop(name, "") for name in _OURS)
        if handed_to != str(pid):
            return cls(None, address, handed_to)
        return cls(_taken(count, names.split(":")), address)

    def tell(self, state: str) -> None:
        """Tell the manager this state, if it wants to be told. Raises OSError."""
        if self.address is not None:
            abstract = self.address.startswith("@")
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as client:
                client.connect("\0" + self.address[1:] if abstract else self.address)
                client.send(state.encode())


ALONE: Final = ServiceManager()
"""No service manager: a start by hand."""


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
    """Yield why this can't be served, if it can't: it must be listening, on TCP."""
    try:
        copy = socket.socket(fileno=os.dup(descriptor))
    except OSError as error:
        yield f"is not a socket: {error.strerror}"
        return
    with copy:
        if copy.family not in (socket.AF_INET, socket.AF_INET6) or copy.type != socket.SOCK_STREAM:
            yield "is not a TCP socket, the only kind that is served (ListenStream= with a port)"
        elif not copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            yield "does not listen: it is a single connection (Accept= must be no)"
