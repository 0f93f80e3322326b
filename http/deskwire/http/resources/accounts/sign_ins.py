"""Audit records of sign-ins and failures (ADR 45)."""

from __future__ import annotations

from typing import Any, Final

import structlog

from deskwire.engine.accounts.people import User
from deskwire.engine.audit.audited_changes import sign_in_failed
from deskwire.engine.core.errors import DomainError, TooManyRequests, Unavailable
from deskwire.engine.core.limits.network import network_of
from deskwire.http.api.calls import Call

log: Final = structlog.get_logger(__name__)


async def record_failure(call: Call[Any, Any], user: User | None, refusal: DomainError) -> None:
    """Record a failed sign-in. A failing disk is only logged, because it also prevents sign-ins.

    Attempts that are refused without checking the password are recorded once per quarter of an hour.
    """
    services, by, reason = call.services, call.origin, refusal.reason
    if isinstance(refusal, TooManyRequests):
        account = None if user is None else user.id
        if not services.refusals.add_if_new(account, network_of(by.address), by.at):
            return
    try:
        await services.store.write(lambda tx: tx.record(sign_in_failed(user, reason)))
    except Unavailable as error:
        log.warning("sign_in.failure_not_recorded", reason=error.reason)
