"""Exports of what is stored about a contact."""

from __future__ import annotations

from functools import partial

from deskwire.engine.audit.deeds import exported
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.core.errors import NotFound
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.store import Brief, Inline
from deskwire.engine.privacy.export import Export, Subject
from deskwire.http.api.calls import Answer, Call, Streamed
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import Routes, dashboard, s2s
from deskwire.http.resources.contacts.contacts import CONTACTS
from deskwire.http.schemas.exports import ContactExport

routes = Routes(CONTACTS)


@routes.add(
    "GET",
    "/s2s/contacts/<user_id>/export",
    s2s("contacts.manage"),
    operation_id="exportContact",
    answer=ContactExport,
    whole=False,
    records=("contact.exported",),
)
async def export_contact(call: Call[Body, Query]) -> Answer:
    """Export everything stored about a contact as one JSON document, without agents' notes.

    The document has the contact's identity, memory, survey responses, tickets and conversations, these with messages,
    links to their files, and network logs. It is streamed, and complete if its last field is `"complete": true`.
    """
    return await _export(call, call.path["user_id"], internal=False)


@routes.add(
    "GET",
    "/contacts/<contact_id>/export",
    dashboard("contacts.manage"),
    operation_id="exportContactWithNotes",
    answer=ContactExport,
    whole=False,
    records=("contact.exported",),
)
async def export_contact_with_notes(call: Call[Body, Query]) -> Answer:
    """Export everything stored about a contact, including agents' notes and the activity of tickets.

    The document is the one of the export for backends, with what only agents see.
    """
    return await _export(call, call.path["contact_id"], internal=True)


async def _export(call: Call[Body, Query], identifier: str, *, internal: bool) -> Answer:
    services, now = call.services, call.services.clock()
    contact = await _find(call, identifier, internal)
    deed = exported(contact.id, call.project.rowid)
    await services.store.write(Brief(lambda tx: tx.record(deed)))
    show = partial(services.uploads.links.shown, now=now)
    export = Export(services.store, Subject(call.project, contact, show, internal), now)
    disposition = {"Content-Disposition": f'attachment; filename="{contact.id}.json"'}
    return Streamed(export.pieces(), "application/json", disposition)


async def _find(call: Call[Body, Query], identifier: str, by_id: bool) -> Contact:
    project = call.project.rowid
    if by_id:
        known = is_id(identifier, "con")
        contact = (
            await call.services.store.read(Inline(lambda reader: reader.contact_by_id(project, identifier)))
            if known
            else None
        )
    else:
        contact = await call.services.store.read(Inline(lambda reader: reader.contact(project, identifier)))
    if contact is None:
        raise NotFound("There is no such contact.", code="contact_not_found")
    return contact
