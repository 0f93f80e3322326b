"""The audit trail of an organisation (ADR 45)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated, Any, Final

import orjson
from pydantic import AfterValidator, Field

from deskwire.engine.audit.actions import ACTIONS
from deskwire.engine.audit.trail import AuditFilter, AuditRecord, Deed, record_view
from deskwire.engine.core.store import Brief
from deskwire.engine.ports import Reader, Store
from deskwire.http.api.input.validation import Body, Query, Time
from deskwire.http.api.pagination import Paged, page
from deskwire.http.api.routing import Answer, Call, Media, Routes, Streamed, Tag, in_organisation
from deskwire.http.resources.accounts.organisations import ONE as ORGANISATION
from deskwire.http.schemas import audit as shapes
from deskwire.http.schemas.base import page_of

routes = Routes(Tag("Audit trail", "The audit trail of an organisation."), in_organisation("members.manage"))
NDJSON: Final = "application/x-ndjson"
PAGE: Final = 500
"""Records that an export reads at a time."""


def _known(action: str) -> str:
    if action not in ACTIONS:
        raise ValueError(f"There is no action {action!r}.")
    return action


ActionName = Annotated[str, AfterValidator(_known), Field(json_schema_extra={"enum": [*ACTIONS]})]


class AuditExport(Query):
    """Which records: by actor (an id or a type), action, object (its id), and when it was done."""

    actor: str | None = None
    action: ActionName | None = None
    object: str | None = None
    since: Time | None = None
    until: Time | None = None


class AuditList(AuditExport, Paged):
    """Which records to list."""

    refuses_empty_cursor = True


@routes.add(
    "GET",
    f"{ORGANISATION}/audit",
    operation_id="listAuditRecords",
    query=AuditList,
    answer=page_of(shapes.AuditRecord),
)
async def list_audit_records(call: Call[Body, AuditList]) -> Answer:
    """List what was done in the organisation and to its members' accounts, newest first."""
    organisation, wanted, query = call.organisation.rowid, _filter(call.query), call.query
    before = query.row
    records = await call.services.store.read(
        lambda reader: reader.audit_records(organisation, wanted, before, query.rows)
    )
    return page(query, records, record_view, lambda record: record.position)


@routes.add(
    "GET",
    f"{ORGANISATION}/audit.ndjson",
    operation_id="exportAuditRecords",
    query=AuditExport,
    answer=Media(NDJSON),
    records=("audit.exported",),
)
async def export_audit_records(call: Call[Body, AuditExport]) -> Answer:
    """Export them all as NDJSON, a record a line, oldest first. It is made while it is sent.

    The export itself is recorded, and is the last record of an export without filters.
    """
    organisation, wanted = call.organisation, _filter(call.query)
    deed = Deed("audit.exported", organisation.id, organisation=organisation.rowid)
    await call.services.store.write(Brief(lambda tx: tx.record(deed)))
    disposition = {"Content-Disposition": f'attachment; filename="{organisation.id}-audit.ndjson"'}
    return Streamed(exported(call.services.store, organisation.rowid, wanted), NDJSON, disposition)


async def exported(store: Store, organisation: int | None, wanted: AuditFilter) -> AsyncIterator[bytes]:
    """The lines, page by page: a slow reader holds no transaction, and memory holds one page."""
    after = 0
    while records := await store.read(_page(organisation, wanted, after)):
        yield b"".join(orjson.dumps(record_view(record)) + b"\n" for record in records)
        after = records[-1].position


def _page(
    organisation: int | None, wanted: AuditFilter, after: int
) -> Callable[[Reader], Sequence[AuditRecord]]:
    return lambda reader: reader.audit_records_after(organisation, wanted, after, PAGE)


def _filter(query: AuditExport) -> AuditFilter:
    given: dict[str, Any] = {name: getattr(query, name) for name in AuditExport.model_fields}
    return AuditFilter(**given)
