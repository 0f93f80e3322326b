"""Contacts in a transaction: made, changed and erased, with the events that say so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import NOBODY, Contact, identify
from deskwire.engine.contacts.ports import ContactTransaction
from deskwire.engine.conversations.commands import ContactRef
from deskwire.engine.conversations.emit import announce_contact
from deskwire.engine.core.errors import NotFound
from deskwire.engine.core.ids import new_id
from deskwire.engine.events.types import contact_lane
from deskwire.engine.webhooks.publish import PublishTransaction, append, targets


class IdentityTransaction(ContactTransaction, PublishTransaction, Protocol):
    """Changes of contacts that are announced."""


def put_contact(tx: IdentityTransaction, project: Project, ref: ContactRef, at: int) -> Contact:
    """Return the contact of `ref`, made or changed as its identity says; a change of one that was known is announced.

    Ours: a new contact is announced by what it is made for (ADR 5). Raises NotFound if it is to exist and was erased.
    """
    known = tx.contact(project.rowid, ref.user_id)
    if ref.id is not None and (known is None or known.id != ref.id):
        raise NotFound("There is no such contact.", code="contact_not_found")
    if known is None:
        blank = Contact(0, new_id("con", at), ref.user_id, at, at)
        return tx.insert_contact(project.rowid, identify(blank, ref.identity, at))
    return change_contact(tx, project, known, ref.identity, at)


def change_contact(
    tx: IdentityTransaction, project: Project, known: Contact, changes: Mapping[str, str | None], at: int
) -> Contact:
    """Return the contact with these identity fields; announced if they change anything."""
    contact = identify(known, changes, at)
    if contact is not known:
        tx.save_contact(contact)
        _announce_contact(tx, project, contact, at, contact_lane(contact.rowid))
    return contact


def erase_contact(tx: IdentityTransaction, project: Project, contact: Contact, at: int) -> None:
    """Remove a contact that has nothing left, and announce that it has no identity any more (ADR 21).

    This event outlives its subject, as that of a conversation's deletion does.
    """
    tx.erase_contact(contact.rowid)
    _announce_contact(tx, project, identify(contact, NOBODY, at), at, None)


def _announce_contact(
    tx: IdentityTransaction, project: Project, contact: Contact, at: int, subject: int | None
) -> None:
    draft = announce_contact(contact)
    lane = contact_lane(contact.rowid)
    append(tx, project, draft, subject, targets(tx, project, draft, {}), at, lane=lane)
