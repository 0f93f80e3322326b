"""Changes of contacts in a transaction, with their events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from deskwire.engine.accounts.people import Project
from deskwire.engine.contacts.blocks import block_as_stored
from deskwire.engine.contacts.contact import (
    ERASED_IDENTITY,
    Contact,
    MergedContact,
    Profile,
    ReservedUserId,
    changed_profile,
    contact_with_profile_view,
    identify,
    is_reserved,
    no_such_contact,
)
from deskwire.engine.contacts.ports import ContactTransaction
from deskwire.engine.conversations.commands import ContactRef
from deskwire.engine.conversations.events import contact_updated
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.errors import Forbidden
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.values import replace
from deskwire.engine.events.project_events import actor_view, contact_changed, contact_merged
from deskwire.engine.events.types import contact_lane
from deskwire.engine.webhooks.publish import PublishTransaction, publish_event, publish_extension, recipients


class IdentityTransaction(ContactTransaction, PublishTransaction, Protocol):
    """Changes of contacts and their events."""


def put_contact(tx: IdentityTransaction, project: Project, ref: ContactRef, at: int) -> Contact:
    """Return the contact of `ref`, created or updated; an update has an event.

    A new contact has no event of its own (our decision, ADR 5).

    Raises NotFound if `ref` names an existing contact that was erased, Forbidden if the caller may not change the contact, and
    Invalid (`reserved_user_id`) if it would be new and its id is one of a visitor.
    """
    known = tx.contact(project.rowid, ref.user_id)
    if ref.id is not None and (known is None or known.id != ref.id):
        raise no_such_contact(None)
    if known is None:
        if is_reserved(ref.user_id) and not ref.visitor:
            raise ReservedUserId(ref.pointer)
        blank = Contact(0, new_id("con", at), ref.user_id, at, at)
        return tx.insert_contact(project.rowid, identify(blank, ref.identity, at))
    if ref.identity and not ref.may_change:
        # Also if nothing would change: otherwise the caller could find out the stored values by trying.
        raise Forbidden(
            f"There is a contact {ref.user_id!r}. To change it takes the permission contacts.manage; "
            "without it, leave the other fields of the contact out."
        )
    return change_contact(tx, project, known, ref.identity, at)


def change_contact(
    tx: IdentityTransaction, project: Project, known: Contact, changes: Mapping[str, str | None], at: int
) -> Contact:
    """Return the contact with these identity fields; a change has an event."""
    contact = identify(known, changes, at)
    if contact is not known:
        tx.save_contact(contact)
        _announce_contact(tx, project, contact, at, contact_lane(contact.rowid))
    return contact


def change_profile(
    tx: IdentityTransaction, project: Project, known: Contact, given: Mapping[str, Any], by: Actor, at: int
) -> tuple[Contact, Profile]:
    """Return the contact with these attributes and tags; a change has an event. Raises Invalid as `changed_profile`.

    Args:
        given: `attributes` are merged, `tags` replace the present ones; both may be missing.
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
    """Store a contact's attributes and tags, with an event if `names` lists changed ones."""
    contact = replace(known, updated_at=at)
    tx.save_profile(contact, profile)
    if names:
        draft = contact_changed(contact_with_profile_view(contact, profile), names, by)
        lane = contact_lane(contact.rowid)
        publish_extension(tx, project, draft, lane, at, lane=lane)
    return contact


def block_contact(
    tx: IdentityTransaction, project: Project, known: Contact, by: Actor, reason: str | None, at: int
) -> Contact:
    """Return the contact, blocked from now (ms) on. The block of a blocked contact stays as it is.

    Raises NotFound if the contact was merged or erased in the meantime.
    """
    tx.lock_writing_of(known.rowid)
    present = tx.survivor(known.rowid)
    if present is None:
        raise no_such_contact(None)
    if present.blocked is not None:
        return present
    return _with_block(tx, project, present, block_as_stored(at, actor_view(by), reason), by, at)


def unblock_contact(tx: IdentityTransaction, project: Project, known: Contact, by: Actor, at: int) -> Contact:
    """Return the contact without its block."""
    return known if known.blocked is None else _with_block(tx, project, known, None, by, at)


def _with_block(
    tx: IdentityTransaction, project: Project, known: Contact, blocked: str | None, by: Actor, at: int
) -> Contact:
    """Store and announce the block of a contact, or its end."""
    contact = replace(known, blocked=blocked, updated_at=at)
    tx.save_block(contact)
    tx.record_block(project.rowid, contact)
    lane = contact_lane(contact.rowid)
    shown = contact_with_profile_view(contact, tx.profile(contact.rowid))
    publish_extension(tx, project, contact_changed(shown, ("blocked",), by), lane, at, lane=lane)
    return contact


def end_merge(tx: IdentityTransaction, project: Project, merged: MergedContact, by: Actor, at: int) -> bool:
    """End a merge, with the event that the source has no identity; return False if parts are still to be moved.

    The source's events are kept as long as the target contact.
    """
    gone = replace(identify(merged.source, ERASED_IDENTITY, at), updated_at=at)
    if not tx.end_merge(gone):
        return False
    _announce_contact(tx, project, gone, at, contact_lane(gone.rowid))
    target, lane = merged.target, contact_lane(merged.target.rowid)
    draft = contact_merged(
        contact_with_profile_view(target, tx.profile(target.rowid)), gone.id, gone.user_id, by
    )
    publish_extension(tx, project, draft, lane, at, lane=lane)
    return True


def erase_contact(tx: IdentityTransaction, project: Project, contact: Contact, at: int) -> None:
    """Remove a contact without conversations, and the contacts merged into it, each with an event (ADR 21).

    The events show that the contact no longer has an identity. They outlive the contact, as the event of a deletion outlives a
    conversation.
    """
    for each in (*tx.merged_into(contact.rowid), contact):
        tx.erase_contact(each.rowid)
        _announce_contact(tx, project, identify(each, ERASED_IDENTITY, at), at, None)


def _announce_contact(
    tx: IdentityTransaction, project: Project, contact: Contact, at: int, subject: int | None
) -> None:
    draft = contact_updated(contact)
    lane = contact_lane(contact.rowid)
    publish_event(
        tx, project, draft, subject, recipients(tx.routed_endpoints(project.rowid), draft, {}), at, lane=lane
    )
