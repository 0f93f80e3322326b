"""Records of exports and of refused calls in the audit trail (ADR 45).

An export is recorded before its first byte is sent, and its number of lines is added at the end. Refused
calls are counted by credential, or by network if the credential is unknown.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Final

import structlog
import trio

from deskwire.engine.audit.refusals import RefusedCall
from deskwire.engine.audit.trail import COUNT_WINDOW_MS, AuditEntry, ChangeOrigin
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.errors import DomainError, Unavailable
from deskwire.engine.core.limits.network import network_of
from deskwire.engine.core.store import InlineJob
from deskwire.engine.core.values import replace
from deskwire.http.api.calls import Call, Caller
from deskwire.http.api.routing import Route
from deskwire.http.api.services import Services

log: Final = structlog.get_logger(__name__)

# Time limit of the last write of a cancelled export.
_LAST_WRITE_TIMEOUT_S: Final = 5.0


async def record_export(call: Call[Any, Any], entry: AuditEntry) -> None:
    """Record an export that starts now.

    Raises Unavailable, and then nothing may be sent.
    """
    await call.services.store.write(InlineJob(lambda tx: tx.record(entry)))


async def recorded_export(
    call: Call[Any, Any], entry: AuditEntry, lines: AsyncGenerator[bytes, None]
) -> AsyncIterator[bytes]:
    """Record an export and return its lines.

    Their number is added to the record's `lines` after they are sent.

    Raises Unavailable, and then nothing may be sent.
    """
    await record_export(call, entry)
    return _counted(call, entry, lines)


async def _counted(
    call: Call[Any, Any], entry: AuditEntry, lines: AsyncGenerator[bytes, None]
) -> AsyncIterator[bytes]:
    sent = 0
    try:
        async with aclosing(lines):
            async for piece in lines:
                sent += piece.count(b"\n")
                yield piece
    finally:
        # An export that its client has cancelled is recorded as well: the lines sent have left the service.
        with trio.move_on_after(_LAST_WRITE_TIMEOUT_S, shield=True):
            more = replace(entry, details={**entry.details, "lines": sent}, times=0)
            try:
                await record_export(call, more)
            except Unavailable as error:
                log.warning("audit.lines_not_recorded", reason=error.reason, lines=sent)


def note_refused(
    services: Services,
    caller: Caller | None,
    error: DomainError,
    route: Route,
    address: str | None,
    request_id: str,
) -> None:
    """Count a refused call.

    Args:
        caller: None if the call was refused before its caller was identified.
        address: the client's address as reported by trusted proxies.
        request_id: the id of the call.
    """
    at = services.clock()
    kind = _kind(caller or Caller(), error, at // COUNT_WINDOW_MS, network_of(address))
    services.refused_calls.note(kind, ChangeOrigin(kind.actor, at, address, request_id), route.operation_id)


def _kind(caller: Caller, error: DomainError, slot: int, network: str) -> RefusedCall:
    reason, shown = error.reason, error.credential
    if shown is not None:
        actor = Actor(shown.type, shown.id)
        return RefusedCall(slot, actor, reason, network, project=shown.project, account=shown.account)
    project, organisation, user = caller.project, caller.organisation, caller.user
    return RefusedCall(
        slot,
        caller.actor,
        reason,
        network,
        organisation=None if organisation is None else organisation.rowid,
        project=None if project is None else project.rowid,
        account=None if user is None or project is not None or organisation is not None else user.rowid,
    )
