"""Exports of the stored data of a contact."""

from __future__ import annotations

from functools import partial
from typing import Final

from deskwire.engine.audit.audited_changes import exported
from deskwire.engine.contacts.contact import Contact, find_contact, no_such_contact
from deskwire.engine.contacts.ports import ContactReader
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.store import InlineJob, InlineQuery
from deskwire.engine.privacy.contact_export import ContactExporter, ExportSubject
from deskwire.http.api.calls import Answer, Call, Streamed
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import Routes, dashboard, fresh, s2s
from deskwire.http.resources.contacts.contacts import CONTACTS
from deskwire.http.schemas.exports import ContactExport

routes = Routes(CONTACTS)

_NEEDED: Final = (
    "contacts.manage",
    "contacts.read",
    "conversations.read",
    "memory.read",
    "surveys.read",
    "tickets.read",
)
"""The permissions to read the content of an export, besides the one to manage contacts."""


@routes.add(
    "GET",
    "/s2s/contacts/<user_id>/export",
    s2s(*_NEEDED),
    operation_id="exportContact",
    answer=ContactExport,
    whole=False,
    errors=("merge_under_way",),
    records=("contact.exported",),
)
async def export_contact(call: Call[Body, Query]) -> Answer:
    """Export everything stored about a contact as one JSON document, without agents' notes.

    The document has the contact's identity, memory, survey responses, tickets and conversations with messages,
    links to their files, and network logs. It is streamed, and complete if its last field is `"complete": true`.
    """
    return await _export(call, call.path["user_id"], internal=False)


@routes.add(
    "GET",
    "/contacts/<contact_id>/export",
    fresh(dashboard(*_NEEDED)),
    operation_id="exportContactWithNotes",
    answer=ContactExport,
    whole=False,
    errors=("merge_under_way",),
    records=("contact.exported",),
)
async def export_contact_with_notes(call: Call[Body, Query]) -> Answer:
    """Export everything stored about a contact, including agents' notes and the activity of tickets.

    The document is the export for backends with the additional fields for agents.
    """
    return await _export(call, call.path["contact_id"], internal=True)


async def _export(call: Call[Body, Query], identifier: str, *, internal: bool) -> Answer:
    services, now = call.services, call.services.clock()
    contact = await _find(call, identifier, internal)
    entry = exported(contact.id, call.project.rowid)
    await services.store.write(InlineJob(lambda tx: tx.record(entry)))
    show = partial(services.uploads.links.shown, now=now)
    export = ContactExporter(call.revocable_store, ExportSubject(call.project, contact, show, internal), now)
    disposition = {"Content-Disposition": f'attachment; filename="{contact.id}.json"'}
    return Streamed(export.pieces(), "application/json", disposition)


async def _find(call: Call[Body, Query], identifier: str, by_id: bool) -> Contact:
    """Return the contact to export. Raises Unavailable while another contact is merged into it, which would be incomplete."""
    if by_id and not is_id(identifier, "con"):
        raise no_such_contact(None)

    def find(reader: ContactReader) -> Contact:
        contact = find_contact(reader, call.project.rowid, identifier, by_id=by_id)
        if any(merge.target.rowid == contact.rowid for _, merge in reader.merges()):
            message = "Another contact is being merged into this one; export it afterwards."
            raise Unavailable(message, code="merge_under_way", retry_after_s=5)
        return contact

    return await call.services.store.read(InlineQuery(find))
