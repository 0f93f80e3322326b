"""Exports in the audit trail: recorded before the first byte is sent, and their lines added at the end (ADR 45)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Final

import structlog
import trio

from deskwire.engine.audit.trail import AuditEntry
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineJob
from deskwire.engine.core.values import replace
from deskwire.http.api.calls import Call

log: Final = structlog.get_logger(__name__)

_LAST_S: Final = 5.0
"""The time that the record of a cut off export may take."""


async def record_export(call: Call[Any, Any], deed: AuditEntry) -> None:
    """Record an export that the caller is about to be sent. Raises Unavailable, and then nothing may be sent."""
    await call.services.store.write(InlineJob(lambda tx: tx.record(deed)))


async def recorded(
    call: Call[Any, Any], deed: AuditEntry, lines: AsyncGenerator[bytes, None]
) -> AsyncIterator[bytes]:
    """Record an export, and return its lines, which add their number to the record's `lines` once they are sent.

    Raises Unavailable, and then nothing may be sent.
    """
    await record_export(call, deed)
    return _counted(call, deed, lines)


async def _counted(
    call: Call[Any, Any], deed: AuditEntry, lines: AsyncGenerator[bytes, None]
) -> AsyncIterator[bytes]:
    sent = 0
    try:
        async with aclosing(lines):
            async for piece in lines:
                sent += piece.count(b"\n")
                yield piece
    finally:
        # Also of an export that its reader has left: what had been sent, has left the service.
        with trio.move_on_after(_LAST_S, shield=True):
            more = replace(deed, details={**deed.details, "lines": sent}, times=0)
            try:
                await record_export(call, more)
            except Unavailable as error:
                log.warning("audit.lines_not_recorded", reason=error.reason, lines=sent)
