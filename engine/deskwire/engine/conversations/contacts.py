"""Contacts in a transaction: made, changed and erased, with the events that say so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.contact import NOBODY, Contact, identify
from deskwire.engine.contacts.merged import Merged, no_such_contact
from deskwire.engine.contacts.ports import ContactTransaction
from deskwire.engine.contacts.profile import Profile, changed_profile, whole_view
from deskwire.engine.conversations.commands import ContactRef
from deskwire.engine.conversations.emit import announce_contact
from deskwire.engine.core.errors import Forbidden
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import replace
from deskwire.engine.events.extensions import contact_changed, contact_merged
from deskwire.engine.events.internal import Actor
from deskwire.engine.events.types import contact_lane
from deskwire.engine.webhooks.publish import PublishTransaction, publish_event, publish_extension, recipients


class IdentityTransaction(ContactTransaction, PublishTransaction, Protocol):
    """Changes of contacts that are announced."""


def put_contact(tx: IdentityTransaction, project: Project, ref: ContactRef, at: int) -> Contact:
    """Return the contact of `ref`, made or changed as its identity says; a change of one that was known is announced.

    Ours: a new contact is announced by what it is made for (ADR 5).

    Raises NotFound if it is to exist and was erased, and Forbidden if it exists and the caller may not change it.
    """
    known = tx.contact(project.rowid, ref.user_id)
    if ref.id is not None and (known is None or known.id != ref.id):
        raise no_such_contact(None)
    if known is None:
        blank = Contact(0, new_id("con", at), ref.user_id, at, at)
        return tx.insert_contact(project.rowid, identify(blank, ref.identity, at))
    if ref.identity and not ref.may_change:
        # Also if nothing would change: the difference would tell what is stored.
        raise Forbidden(
            f"There is a contact {ref.user_id!r}. To change it takes the permission contacts.manage; "
            "without it, leave the other fields of the contact out."
        )
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


def change_profile(
    tx: IdentityTransaction, project: Project, known: Contact, given: Mapping[str, Any], by: Actor, at: int
) -> tuple[Contact, Profile]:
    """Return the contact with these attributes and tags; told if they change anything. Raises Invalid as `changed_profile`.

    Args:
        given: `attributes` to be merged, and `tags`, which replace all; both may be missing.
    """
    before = tx.profile(known.rowid)
    profile, names = changed_profile(before, given)
    if not names:
        return known, before
    return put_profile(tx, project, known, profile, names, by, at), profile


def put_profile(
    tx: IdentityTransaction,
    project: Project,
    known: Contact,
    profile: Profile,
    names: Sequence[str],
    by: Actor,
    at: int,
) -> Contact:
    """Store a contact's attributes and tags, told if they have changed; `names` says which have."""
    contact = replace(known, updated_at=at)
    tx.save_profile(contact, profile)
    if names:
        draft = contact_changed(whole_view(contact, profile), names, by)
        lane = contact_lane(contact.rowid)
        publish_extension(tx, project, draft, lane, at, lane=lane)
    return contact


def end_merge(tx: IdentityTransaction, project: Project, merged: Merged, by: Actor, at: int) -> bool:
    """End a merge, and announce that the source has no identity any more; False if something of it is still to be moved.

    Its events stay as long as the contact that it was merged into.
    """
    gone = replace(identify(merged.source, NOBODY, at), updated_at=at)
    if not tx.end_merge(gone):
        return False
    _announce_contact(tx, project, gone, at, contact_lane(gone.rowid))
    target, lane = merged.target, contact_lane(merged.target.rowid)
    draft = contact_merged(whole_view(target, tx.profile(target.rowid)), gone.id, gone.user_id, by)
    publish_extension(tx, project, draft, lane, at, lane=lane)
    return True


def erase_contact(tx: IdentityTransaction, project: Project, contact: Contact, at: int) -> None:
    """Remove a contact that has nothing left, and announce that it has no identity any more (ADR 21).

    So it is with those that were merged into it. These events outlive their subjects, as that of a conversation's deletion does.
    """
    for each in (*tx.merged_into(contact.rowid), contact):
        tx.erase_contact(each.rowid)
        _announce_contact(tx, project, identify(each, NOBODY, at), at, None)


def _announce_contact(
    tx: IdentityTransaction, project: Project, contact: Contact, at: int, subject: int | None
) -> None:
    draft = announce_contact(contact)
    lane = contact_lane(contact.rowid)
    publish_event(tx, project, draft, subject, recipients(tx, project, draft, {}), at, lane=lane)
