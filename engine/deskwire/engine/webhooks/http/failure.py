"""Errors of an attempt, and their description in the delivery log (decisions 6).

If this machine lacked a file descriptor, memory or a thread, the failure does not count against the receiver.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
from collections.abc import Iterator
from typing import Final

import h11
import trio

from deskwire.engine.webhooks.http.address import (
    SHORTAGES,
    AddressRefused,
    ResolutionFailed,
    ThreadUnavailable,
)
from deskwire.engine.webhooks.http.connection import Disconnected

# Retry delay after this machine lacked a resource. Such an attempt does not count and is not the endpoint's
# failure.
SHORTAGE_RETRY_DELAY_MS: Final = 1_000


class ProxyFailed(Exception):
    """The operator's proxy failed; the message explains how."""


# Errors of an attempt that come from the network, the proxy or the receiver.
WIRE_ERRORS = (
    OSError,
    trio.BrokenResourceError,
    Disconnected,
    h11.RemoteProtocolError,
    AddressRefused,
    ResolutionFailed,
    ProxyFailed,
)


def describe_error(error: Exception) -> str:
    """Return a short description of one of WIRE_ERRORS.

    For example "connection refused", "TLS: ..." or "address refused: ...".
    """
    match error:
        case AddressRefused():
            return f"address refused: {error}"
        case ProxyFailed():
            return f"proxy: {error}"
        case ResolutionFailed():
            return str(error)
        case Disconnected():
            return _CLOSED
        case h11.RemoteProtocolError():
            return f"malformed answer: {_lower(str(error))}"
    for cause in _causes(error):
        match cause:
            case ssl.SSLCertVerificationError():
                return f"TLS: certificate verify failed: {cause.verify_message}"
            case ssl.SSLError():
                return f"TLS: {(cause.reason or str(cause)).replace('_', ' ').lower()}"
            case OSError(errno=int(number)):
                return _errno_words(number)
    return _CLOSED


def shortage(error: BaseException) -> str | None:
    """Return a description of the resource that this machine lacked, or None."""
    for cause in _causes(error):
        lacked = "memory" if isinstance(cause, MemoryError) else None
        if isinstance(cause, ThreadUnavailable):
            lacked = "thread"
        elif isinstance(cause, OSError) and not isinstance(cause, socket.gaierror):
            lacked = SHORTAGES.get(cause.errno or 0)
        if lacked is not None:
            return f"this server had no {lacked} left; the attempt is made again and does not count"
    return None


def is_unreachable(words: str) -> bool:
    """Return whether this text of `describe_error` means that no connection was made."""
    return words in _NOT_REACHED or words.startswith(_NO_HOST)


def _errno_words(number: int) -> str:
    if number in (errno.ECONNRESET, errno.EPIPE):
        return _CLOSED
    return os.strerror(number).lower()


_NOT_REACHED = frozenset(
    os.strerror(number).lower()
    for number in (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN)
)
_NO_HOST = "host not found"
_CLOSED = "connection closed before the answer"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and the chain of its causes."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
