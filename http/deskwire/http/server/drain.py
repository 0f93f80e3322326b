"""Reading away what a peer still sends that is not listened to any more.

A connection that is closed with unread bytes is reset, and a reset overtakes the goodbye that says why (RFC 9112
section 9.6). Nothing is parsed: at most the first byte of what came is looked at.
"""

from __future__ import annotations

from typing import Final

import trio

from deskwire.http.stream.websocket.frames import CLOSE

_READ: Final = 16 * 1024
_READS: Final = 64
"""Reads at most, a megabyte: who sends more is not waiting for an answer."""


async def drain(stream: trio.abc.Stream) -> None:
    """Read until the peer closes, a close frame of its begins what comes, or it has sent too much.

    Raises BrokenResourceError and ClosedResourceError.
    """
    for _ in range(_READS):
        data = await stream.receive_some(_READ)
        if not data or data.startswith(CLOSE):
            return
