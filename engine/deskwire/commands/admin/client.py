"""Sends admin commands to the server of a data directory, through its control socket.

It does not import the server's libraries, so that commands start fast.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any, Final

SOCKET_FILE: Final = "admin.sock"
COMMAND_TIMEOUT_S: Final = 30.0  # from the connection to the end of the response
_PATH_MAX: Final = 100  # bytes of a socket's path, a few less than any system allows
_PIECE: Final = 1 << 16


class NoResponseError(Exception):
    """The connection ended before the response; the command may or may not have been run."""


def send_command(directory: Path, name: str, arguments: bytes) -> dict[str, Any] | None:
    """Send a command to the server of this directory. Return its response; None if no server is listening.

    Raises NoResponseError, and OSError if the socket can't be used.
    """
    connection = _connected(directory)
    if connection is None:
        return None
    with connection:
        line = b'{"operation": %s, "arguments": %s}\n' % (json.dumps(name).encode(), arguments)
        connection.settimeout(COMMAND_TIMEOUT_S)
        try:
            connection.sendall(line)
        except (
            ConnectionError,
            TimeoutError,
        ):  # the server is stopping or overloaded; it ignores an incomplete line
            return None
        received = _all_of(connection)
    if not received.endswith(b"\n"):
        raise NoResponseError("The server did not respond: check whether the command was carried out.")
    response: dict[str, Any] = json.loads(received)
    return response


def _all_of(connection: socket.socket) -> bytes:
    """Return the bytes received until the connection ends, or until the timeout."""
    received, until = bytearray(), monotonic() + COMMAND_TIMEOUT_S
    try:
        while (left := until - monotonic()) > 0:
            connection.settimeout(left)
            if not (piece := connection.recv(_PIECE)):
                break
            received += piece
    except (ConnectionError, TimeoutError):
        pass
    return bytes(received)


def _connected(directory: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket_address(directory) as address:
            connection.connect(address)
    except OSError as error:
        connection.close()
        unserved = isinstance(error, FileNotFoundError | ConnectionRefusedError)
        if unserved or not (directory / SOCKET_FILE).exists():
            return None
        raise
    return connection


@contextmanager
def socket_address(directory: Path) -> Iterator[str]:
    """Yield the socket's address, through an open directory if the path is too long for a socket."""
    path = str(directory / SOCKET_FILE)
    if len(os.fsencode(path)) <= _PATH_MAX or not Path("/proc/self/fd").exists():
        yield path
        return
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{SOCKET_FILE}"
    finally:
        os.close(handle)
