"""Refused calls as the audit trail counts them: by credential, or by network where none is known (ADR 45)."""

from __future__ import annotations

from deskwire.engine.audit.refusals import RefusedCall
from deskwire.engine.audit.trail import COUNT_WINDOW_MS, ChangeOrigin
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.errors import DomainError
from deskwire.engine.core.limits.network import network_of
from deskwire.engine.core.values import replace
from deskwire.http.api.calls import Caller
from deskwire.http.api.routing import Route
from deskwire.http.api.services import Services


def note_refused(
    services: Services,
    caller: Caller | None,
    error: DomainError,
    route: Route,
    address: str | None,
    request_id: str,
) -> None:
    """Count a call that was refused.

    Args:
        caller: None if the call was refused before it was known whose it is.
        address: of the client, as far as trusted proxies tell.
        request_id: of the call.
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
        replace(caller.actor, name=None),
        reason,
        network,
        organisation=None if organisation is None else organisation.rowid,
        project=None if project is None else project.rowid,
        account=None if user is None or project is not None or organisation is not None else user.rowid,
    )
