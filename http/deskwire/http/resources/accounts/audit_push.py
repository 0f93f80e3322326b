"""The push of an organisation's audit trail to a webhook (ADR 45)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import Field

from deskwire.engine.audit.push import (
    AuditPush,
    PushReader,
    PushTransaction,
    found_push,
    push_view,
    with_secret,
)
from deskwire.engine.core.errors import Invalid
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import replace
from deskwire.engine.ports import Transaction
from deskwire.engine.webhooks.endpoint import secret_tail
from deskwire.engine.webhooks.signature import new_secret
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import MEDIUM, Routes
from deskwire.http.resources.accounts import audit
from deskwire.http.resources.accounts.organisations import ONE as ORGANISATION
from deskwire.http.schemas import audit as shapes
from deskwire.http.schemas.base import Deleted

routes = Routes(audit.routes.tag, audit.routes.access)

_ONE: Final = f"{ORGANISATION}/audit/push"


class PutAuditPushRequest(Body):
    """The URL to post the records to, which must be public and https like a webhook's."""

    url: Annotated[str, Field(min_length=1)]


@routes.add("GET", _ONE, operation_id="getAuditPush", answer=shapes.AuditPush, errors=("push_not_found",))
async def get_push(call: Call[Body, Query]) -> Answer:
    """Fetch the target of the audit trail's push, and its state."""
    organisation = call.organisation.rowid

    def find(reader: PushReader) -> Mapping[str, Any]:
        push = found_push(reader, organisation)
        return push_view(push, reader.count_unpushed(push.rowid))

    return await call.services.store.read(find)


@routes.add(
    "PUT",
    _ONE,
    audit.CHANGE,
    operation_id="putAuditPush",
    body=PutAuditPushRequest,
    limit=MEDIUM,
    answer=shapes.AuditPush,
    further=(lambda call: _check_url(call),),
    records=("audit.push_created", "audit.push_changed"),
)
async def put_push(call: Call[PutAuditPushRequest, Query]) -> Answer:
    """Push the audit trail to a URL from now on, which may replace another URL.

    Each record is posted in the order of the trail, signed like a webhook, until the receiver responds with 2xx. The response
    that creates the push shows the signing secret once; all others mask it. Earlier records are not pushed.
    """
    await _check_url(call)
    services, organisation, url, now = (
        call.services,
        call.organisation.rowid,
        call.body.url,
        call.services.clock(),
    )
    secret = new_secret()
    sealed = services.webhooks.seal(secret)

    def put(tx: Transaction) -> tuple[AuditPush, int, str | None]:
        push = tx.audit_push(organisation)
        if push is None:
            made = AuditPush(new_id("psh", now), organisation, url, sealed, secret_tail(secret), now, now)
            push = tx.insert_audit_push(made)
            return push, tx.count_unpushed(push.rowid), secret
        if push.url != url:
            push = replace(push, url=url, updated_at=now, due_at=None)
            tx.save_audit_push(push)
        return push, tx.count_unpushed(push.rowid), None

    return push_view(*await services.store.write(put))


@routes.add(
    "POST",
    f"{_ONE}/rotate-secret",
    audit.CHANGE,
    operation_id="rotateAuditPushSecret",
    answer=shapes.AuditPush,
    errors=("push_not_found",),
    idempotent=True,
    records=("audit.push_secret_rotated",),
)
async def rotate_secret(call: Call[Body, Query]) -> Answer:
    """Replace the secret that signs pushes. The new one is shown only once; the old one also signs for 24 hours.

    A repeated request with the same `Idempotency-Key` does not rotate again, and its response masks the secret.
    """
    organisation, now, secret = call.organisation.rowid, call.services.clock(), new_secret()
    sealed = call.services.webhooks.seal(secret)

    def rotate(tx: PushTransaction) -> tuple[AuditPush, int]:
        push = with_secret(found_push(tx, organisation), sealed, secret_tail(secret), now)
        tx.save_audit_push(push)
        return push, tx.count_unpushed(push.rowid)

    rotated = await call.services.store.write(call.around(rotate, lambda done: push_view(*done)))
    return push_view(*rotated, secret)


@routes.add(
    "DELETE",
    _ONE,
    audit.CHANGE,
    operation_id="deleteAuditPush",
    answer=Deleted,
    errors=("push_not_found",),
    records=("audit.push_deleted",),
)
async def delete_push(call: Call[Body, Query]) -> Answer:
    """Stop pushing the audit trail. Records that were not pushed yet stay in the trail, like the record of this deletion."""
    organisation = call.organisation.rowid

    def delete(tx: PushTransaction) -> AuditPush:
        push = found_push(tx, organisation)
        tx.delete_audit_push(push)
        return push

    return {"id": (await call.services.store.write(delete)).id, "deleted": True}


async def _check_url(call: Call[Any, Query]) -> None:
    if call.body.url is not None and (problems := await call.services.webhooks.check_url(call.body.url)):
        raise Invalid(*problems)
