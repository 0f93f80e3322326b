"""The audit trail of an organisation (ADR 45)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Annotated, Any, Final

import orjson
from pydantic import AfterValidator, Field

from deskwire.engine.audit.actions import ACTIONS
from deskwire.engine.audit.trail import (
    AuditEntry,
    AuditFilter,
    AuditReader,
    AuditRecord,
    AuditTransaction,
    record_view,
)
from deskwire.engine.core.store import InlineJob, Store
from deskwire.http.api.calls import Answer, Call, Streamed
from deskwire.http.api.input.validation import Body, Query, Time
from deskwire.http.api.pagination import Paged, page
from deskwire.http.api.routing import Media, Routes, Tag, fresh, in_organisation
from deskwire.http.resources.accounts.organisations import ONE as ORGANISATION
from deskwire.http.schemas import audit as shapes
from deskwire.http.schemas.base import page_of

_READ: Final = in_organisation("members.manage")
CHANGE: Final = fresh(_READ)
routes = Routes(Tag("Audit trail", "Read and export the audit trail of an organisation."), _READ)
NDJSON: Final = "application/x-ndjson"
PAGE_SIZE: Final = 500
"""Records that an export reads at once."""


def _known(action: str) -> str:
    if action not in ACTIONS:
        raise ValueError(f"There is no action {action!r}.")
    return action


ActionName = Annotated[str, AfterValidator(_known), Field(json_schema_extra={"enum": [*ACTIONS]})]


class AuditExport(Query):
    """The filters of an export: actor (an id or a type), action, object (its id), and time."""

    actor: str | None = None
    action: ActionName | None = None
    object: str | None = None
    since: Time | None = None
    until: Time | None = None


class AuditList(AuditExport, Paged):
    """The filters of a list of audit records, and its page."""

    refuses_empty_cursor = True


@routes.add(
    "GET",
    f"{ORGANISATION}/audit",
    operation_id="listAuditRecords",
    query=AuditList,
    answer=page_of(shapes.AuditRecord),
)
async def list_audit_records(call: Call[Body, AuditList]) -> Answer:
    """List the audit records of an organisation and of its members' accounts, newest first."""
    organisation, criteria, query = call.organisation.rowid, _filter(call.query), call.query
    before = query.row
    records = await call.services.store.read(
        lambda reader: reader.audit_records(organisation, criteria, before, query.rows)
    )
    return page(query, records, record_view, lambda record: record.position)


@routes.add(
    "GET",
    f"{ORGANISATION}/audit.ndjson",
    CHANGE,
    operation_id="exportAuditRecords",
    query=AuditExport,
    answer=Media(NDJSON),
    records=("audit.exported",),
)
async def export_audit_records(call: Call[Body, AuditExport]) -> Answer:
    """Export the audit records as NDJSON, one record per line, oldest first. The export is streamed.

    The export itself is recorded, as the last record of an export without filters.
    """
    organisation, criteria = call.organisation, _filter(call.query)
    entry = AuditEntry("audit.exported", organisation.id, organisation=organisation.rowid)
    await call.services.store.write(InlineJob(lambda tx: tx.record(entry)))
    disposition = {"Content-Disposition": f'attachment; filename="{organisation.id}-audit.ndjson"'}
    return Streamed(exported(call.services.store, organisation.rowid, criteria), NDJSON, disposition)


async def exported(
    store: Store[AuditReader, AuditTransaction], organisation: int | None, criteria: AuditFilter
) -> AsyncIterator[bytes]:
    """Yield the lines, page by page: a slow reader blocks no transaction, and memory holds one page."""
    after = 0
    while records := await store.read(_page(organisation, criteria, after)):
        yield b"".join(orjson.dumps(record_view(record)) + b"\n" for record in records)
        after = records[-1].position


def _page(
    organisation: int | None, criteria: AuditFilter, after: int
) -> Callable[[AuditReader], Sequence[AuditRecord]]:
    return lambda reader: reader.audit_records_after(organisation, criteria, after, PAGE_SIZE)


def _filter(query: AuditExport) -> AuditFilter:
    filters: dict[str, Any] = {name: getattr(query, name) for name in AuditExport.model_fields}
    return AuditFilter(**filters)
