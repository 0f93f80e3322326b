"""What went wrong with an attempt, in words for the delivery log (decisions 6)."""

from __future__ import annotations

import errno
import os
import ssl

import h11
import trio

from deskwire.engine.webhooks.http.connection import Disconnected
from deskwire.engine.webhooks.http.dialer import AddressRefused
from deskwire.engine.webhooks.http.resolver import ResolutionFailed
from deskwire.engine.webhooks.http.shortage import causes


class ProxyFailed(Exception):
    """The operator's proxy did not do its part; the text says how."""


WIRE_ERRORS = (
    OSError,
    trio.BrokenResourceError,
    Disconnected,
    h11.RemoteProtocolError,
    AddressRefused,
    ResolutionFailed,
    ProxyFailed,
)
"""What an attempt may raise because of the network, the proxy or the receiver."""


def in_words(error: Exception) -> str:
    """One of WIRE_ERRORS as a short text: "connection refused", "TLS: ...", "address refused: ..."."""
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
    for cause in causes(error):
        match cause:
            case ssl.SSLCertVerificationError():
                return f"TLS: certificate verify failed: {cause.verify_message}"
            case ssl.SSLError():
                return f"TLS: {_lower((cause.reason or str(cause)).replace('_', ' '))}"
            case OSError(errno=int(number)):
                return _errno_words(number)
    return _CLOSED


def not_connected(words: str) -> bool:
    """Whether an attempt that failed with these words of `in_words` reached nobody who could have got anything."""
    return words in _NOBODY or words.startswith(_NO_HOST)


def _errno_words(number: int) -> str:
    if number in (errno.ECONNRESET, errno.EPIPE):
        return _CLOSED
    return os.strerror(number).lower()


_NOBODY = frozenset(
    os.strerror(number).lower()
    for number in (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN)
)
_NO_HOST = "host not found"
_CLOSED = "connection closed before the answer"


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]
