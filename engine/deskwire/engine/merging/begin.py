"""The beginning of a merge, in one transaction: what is small moves at once, and the source is not found any more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.audit.trail import AuditTransaction
from deskwire.engine.contacts.contact import IDENTITY, Contact, MergedContact, Profile, find_contact
from deskwire.engine.contacts.memory import MemoryTransaction
from deskwire.engine.conversations.contacts import IdentityTransaction, change_contact, put_profile
from deskwire.engine.conversations.tags import TAGS_MAX, distinct_tags
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.errors import Invalid, Problem
from deskwire.engine.definitions.attributes import overfull
from deskwire.engine.events.project_events import append_internal_event, memory_changed
from deskwire.engine.events.types import contact_lane


class BeginTransaction(IdentityTransaction, MemoryTransaction, AuditTransaction, Protocol):
    """Changes that the beginning of a merge makes."""


class Wanted(Struct, frozen=True):
    """A merge that is asked for: both contacts by their `con_` ids, or the backend's ids; and who asks."""

    target: str
    source: str
    by_id: bool
    actor: Actor


class Begun(Struct, frozen=True):
    """A merge that has begun, just now or earlier; `mine` if this node is the one that carries it out."""

    merged: MergedContact
    mine: bool


class InTheWay(Exception):
    """Another merge has to end first; it is `merge`."""

    def __init__(self, merge: MergedContact) -> None:
        super().__init__(merge.source.id)
        self.merge = merge


def begin(tx: BeginTransaction, project: Project, wanted: Wanted, incarnation: int, at: int) -> Begun:
    """Begin a merge, or find the one that has begun before; return it.

    Raises:
        NotFound: there is no contact to merge into.
        Invalid: the source is unknown, or the same, or was merged elsewhere; or both together have too much.
        InTheWay: a merge into the source is under way.
    """
    target = find_contact(tx, project.rowid, wanted.target, by_id=wanted.by_id)
    find = tx.contact_by_id if wanted.by_id else tx.contact
    source = find(project.rowid, wanted.source)
    if source is None:
        merged = _begun(tx.merged(project.rowid, wanted.source, by_id=wanted.by_id), target)
        return Begun(merged, merged.under_way and tx.claim_erasure(merged.source.rowid, incarnation))
    if source.rowid == target.rowid:
        raise Invalid(Problem("/from", "same", "A contact can't be merged into itself."))
    for _, merge in tx.merges():
        if merge.target.rowid == source.rowid:
            raise InTheWay(merge)
    tx.lock_contacts(source.rowid, target.rowid)
    held = tx.survivor(source.rowid), tx.survivor(target.rowid)
    if held[0] is None or held[1] is None:  # another node was first
        return begin(tx, project, wanted, incarnation, at)
    return _begin(tx, project, held[0], held[1], wanted.actor, incarnation, at)


def _begun(merged: MergedContact | None, target: Contact) -> MergedContact:
    """Return the merge of an earlier request, which this one repeats. Raises Invalid if there was none."""
    if merged is None:
        raise Invalid(Problem("/from", "unknown", "There is no such contact in this project."))
    if merged.target.rowid != target.rowid:
        message = "This contact was merged into another one before."
        raise Invalid(Problem("/from", "merged", message))
    return merged


def _begin(
    tx: BeginTransaction,
    project: Project,
    source: Contact,
    target: Contact,
    actor: Actor,
    incarnation: int,
    at: int,
) -> Begun:
    remembered, before = tx.memory_size(source.rowid), tx.profile(target.rowid)
    profile = united(tx.profile(source.rowid), before)
    names = [name for name in ("attributes", "tags") if getattr(profile, name) != getattr(before, name)]
    target = change_contact(tx, project, target, missing(source, target), at)
    target = put_profile(tx, project, target, profile, names, actor, at)
    tx.begin_merge(source.rowid, target.rowid)
    tx.claim_erasure(source.rowid, incarnation)
    if remembered:
        told = memory_changed(target.id, deleted=False)
        append_internal_event(tx, project, told, contact_lane(target.rowid), at)
    return Begun(MergedContact(source, target, True), True)


def missing(source: Contact, target: Contact) -> Mapping[str, str | None]:
    """Return the identity fields that the target lacks and the source has."""
    names = (name for name in IDENTITY if getattr(target, name) is None)
    return {name: getattr(source, name) for name in names if getattr(source, name) is not None}


def united(source: Profile, target: Profile) -> Profile:
    """Return the attributes and tags of both; of two values, and of two tags with one key, the target's. Raises Invalid if that is too much."""
    both = Profile({**source.attributes, **target.attributes}, distinct_tags((*target.tags, *source.tags)))
    problems = []
    if (full := overfull(both.attributes, "contact")) is not None:
        problems.append(Problem("/from", full.code, f"Merged, they have too many attributes. {full.message}"))
    if len(both.tags) > TAGS_MAX:
        message = f"Merged, they have {len(both.tags)} tags; a contact has at most {TAGS_MAX}."
        problems.append(Problem("/from", "too_many", message))
    if problems:
        raise Invalid(*problems)
    return both
