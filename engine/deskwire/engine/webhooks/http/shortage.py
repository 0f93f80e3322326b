"""What an attempt lacked on this machine: a file descriptor, memory, a thread. It says nothing of the receiver."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from typing import Final

WAIT_MS: Final = 1_000
"""Until the same attempt is made again. Such a one uses up none, and is no failure of the endpoint."""

_LACKS: Final = {
    errno.EMFILE: "file descriptor",
    errno.ENFILE: "file descriptor",
    errno.ENOMEM: "memory",
    errno.ENOBUFS: "memory",
}


class NoThread(OSError):
    """No thread could be started."""


def lacked(error: BaseException) -> str | None:
    """What this machine had too little of, in words for the delivery log; None if the error has another reason."""
    for cause in causes(error):
        what = "memory" if isinstance(cause, MemoryError) else None
        if isinstance(cause, NoThread):
            what = "thread"
        elif isinstance(cause, OSError) and not isinstance(cause, socket.gaierror):
            what = _LACKS.get(cause.errno or 0)
        if what is not None:
            return f"this server had no {what} left; the attempt is made again and does not count"
    return None


def name_lookup_lacked(error: OSError) -> OSError | None:
    """What a lookup that has failed lacked on this machine, as an error of its own.

    The system's library says no more than that it may go better next time.
    """
    if isinstance(error, socket.gaierror) and error.errno == socket.EAI_MEMORY:
        return OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))
    if not isinstance(error, socket.gaierror):
        return error if error.errno in _LACKS else None
    try:
        os.close(os.dup(2))
    except OSError as none_left:
        return none_left
    return None


def causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and everything that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
