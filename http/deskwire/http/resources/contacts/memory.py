"""The memory of a contact: named notes (contract 4.7; decisions 7). A session is the contact, by its `con_` id.

If the project has disabled memory, every call returns 200 with `ok: false`, because it is not an error of the
caller. A contact always has a user id, so `no_userId` does not occur.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, TypeVar

from pydantic import AfterValidator, Field

from deskwire.engine.audit.audited_changes import deleted
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.contacts.memory import ENTRIES_MAX, MemoryEntry, memory_view
from deskwire.engine.contacts.ports import ContactReader
from deskwire.engine.core.errors import Conflict, NotFound
from deskwire.engine.core.ids import is_id, new_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.core.values import replace
from deskwire.engine.events.project_events import append_internal_event, memory_changed
from deskwire.engine.events.types import contact_lane
from deskwire.engine.ports import Reader, Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import NOT_BLANK, Body, Query, nulls, refuse_null
from deskwire.http.api.pagination import EMPTY_PAGE, Paged, page
from deskwire.http.api.routing import LARGE, Routes, Tag, dashboard
from deskwire.http.schemas import content as shapes

B = TypeVar("B", bound=Body)
Q = TypeVar("Q", bound=Query)

routes = Routes(
    Tag(
        "Memory",
        "Named notes about a contact, for a bot to remember. A session is a contact, by its `con_` id.\n\n"
        "If the project has disabled memory, every call returns 200 with `ok: false`, which is not an error of the "
        "caller. A contact always has a user id, so `no_userId` does not occur.",
    ),
    unrecorded="It is content: it grants nothing, and is not a setting.",
)
_ALL: Final = "/sessions/<session_id>/memory"
_ONE: Final = f"{_ALL}/<entry_name>"
_READ: Final = dashboard("memory.read")
_MANAGE: Final = dashboard("memory.manage")
_DISABLED: Final[Mapping[str, Any]] = {"ok": False, "reason": "disabled"}


def _nameable(name: str) -> str:
    if "/" in name or any(unicodedata.category(each)[0] == "C" for each in name):
        raise ValueError("A name must not have `/` or an invisible character.")
    return name


Name = Annotated[
    str,
    Field(
        min_length=1,
        max_length=100,
        json_schema_extra={"pattern": r"^[^/\x00-\x1f\x7f-\x9f]+$"},
    ),
    NOT_BLANK,
    AfterValidator(_nameable),
]
Content = Annotated[str, Field(min_length=1, max_length=10_000), NOT_BLANK]
Description = Annotated[str, Field(max_length=500)]


class PutMemoryRequest(Body):
    """The memory entry to store, by its name."""

    name: Name
    content: Content
    description: Description | None = None


class ChangeMemoryRequest(Body):
    """The fields to change. `description` can be set to null."""

    content: Content | None = None
    description: Description | None = None


@routes.add("GET", _ALL, _READ, operation_id="listMemory", query=Paged, answer=shapes.MemoryPage)
async def list_memory(call: Call[Body, Paged]) -> Answer:
    """List the memory entries of a contact, newest first."""
    query, find = call.query, _session(call)
    before = query.row
    if not await _enabled(call):
        return {**_DISABLED, **EMPTY_PAGE}
    entries = await call.services.store.read(
        lambda reader: reader.memory_entries(find(reader).rowid, before, query.rows)
    )
    return {"ok": True, **page(query, entries, memory_view, lambda entry: entry.rowid)}


@routes.add(
    "POST",
    _ALL,
    _MANAGE,
    operation_id="putMemory",
    body=PutMemoryRequest,
    limit=LARGE,
    answer=shapes.MemoryEntryResult | shapes.MemoryDisabled,
    errors=("memory_limit_reached",),
    idempotent=True,
)
async def put_memory(call: Call[PutMemoryRequest, Query]) -> Answer:
    """Store a memory entry of a contact. An entry with the same name is replaced."""
    body, now, find, notify = call.body, call.services.clock(), _session(call), _notifier(call)

    def put(tx: Transaction) -> MemoryEntry:
        contact = notify(tx, find(tx))
        known = tx.memory_entry(contact, body.name)
        if known is not None:
            changed = replace(known, content=body.content, description=body.description, updated_at=now)
            return tx.put_memory_entry(contact, changed)
        if tx.memory_size(contact) >= ENTRIES_MAX:
            message = f"A contact has at most {ENTRIES_MAX} memory entries."
            raise Conflict(message, code="memory_limit_reached")
        entry = MemoryEntry(0, new_id("mem", now), body.name, body.content, body.description, now, now)
        return tx.put_memory_entry(contact, entry)

    if not await _enabled(call):
        return _DISABLED
    return await call.commit(put, lambda entry: {"ok": True, **memory_view(entry)})


@routes.add(
    "DELETE",
    _ALL,
    _MANAGE,
    operation_id="clearMemory",
    answer=shapes.MemoryCleared,
    records=("memory.deleted",),
)
async def clear_memory(call: Call[Body, Query]) -> Answer:
    """Delete all memory entries of a contact. `entries` is the number deleted."""
    find = _session(call)
    if not await _enabled(call):
        return {**_DISABLED, "consolidationEnqueued": False, "entries": 0}
    notify = _notifier(call, deleted=True)

    def clear(tx: Transaction) -> int:
        contact = find(tx)
        entries = tx.clear_memory(notify(tx, contact))
        if entries:
            tx.record(deleted("memory", contact.id, call.project.rowid, entries=entries))
        return entries

    entries = await call.services.store.write(clear)
    return {"ok": True, "consolidationEnqueued": False, "entries": entries}


@routes.add(
    "GET", _ONE, _READ, operation_id="getMemory", answer=shapes.MemoryEntryResult | shapes.MemoryDisabled
)
async def get_memory(call: Call[Body, Query]) -> Answer:
    """Fetch a memory entry by its name."""
    if not await _enabled(call):
        return _DISABLED
    _, entry = await call.services.store.read(InlineQuery(_entry(call)))
    return {"ok": True, **memory_view(entry)}


@routes.add(
    "PATCH",
    _ONE,
    _MANAGE,
    operation_id="changeMemory",
    body=ChangeMemoryRequest,
    limit=LARGE,
    answer=shapes.MemoryEntryResult | shapes.MemoryDisabled,
    further=(nulls("description"),),
)
async def change_memory(call: Call[ChangeMemoryRequest, Query]) -> Answer:
    """Change the content or the description of a memory entry."""
    find, now, notify = _entry(call), call.services.clock(), _notifier(call)
    changes: dict[str, Any] = call.body.model_dump(exclude_unset=True)
    refuse_null(call.body, frozenset({"description"}))

    def change(tx: Transaction) -> MemoryEntry:
        contact, entry = find(tx)
        changed = replace(entry, **changes)
        if changed == entry:
            return entry
        return tx.put_memory_entry(notify(tx, contact), replace(changed, updated_at=now))

    if not await _enabled(call):
        return _DISABLED
    return {"ok": True, **memory_view(await call.services.store.write(change))}


@routes.add(
    "DELETE",
    _ONE,
    _MANAGE,
    operation_id="deleteMemory",
    answer=shapes.MemoryEntryDeleted | shapes.MemoryDisabled,
    records=("memory.deleted",),
)
async def delete_memory(call: Call[Body, Query]) -> Answer:
    """Delete a memory entry."""
    find = _entry(call)

    notify = _notifier(call, deleted=True)

    def delete(tx: Transaction) -> MemoryEntry:
        contact, entry = find(tx)
        notify(tx, contact)
        tx.delete_memory_entry(entry)
        tx.record(deleted("memory", contact.id, call.project.rowid, entries=1))
        return entry

    if not await _enabled(call):
        return _DISABLED
    return {"ok": True, "id": (await call.services.store.write(delete)).id, "deleted": True}


async def _enabled(call: Call[B, Q]) -> bool:
    """Return whether the project has memory enabled. Raises NotFound for an unknown session first."""
    await call.services.store.read(InlineQuery(_session(call)))
    return call.project.settings.memory_enabled


def _session(call: Call[B, Q]) -> Callable[[ContactReader], Contact]:
    """Return a query for the contact in the path, which raises NotFound."""
    project, session_id = call.project.rowid, call.path["session_id"]

    def find(reader: ContactReader) -> Contact:
        contact = reader.contact_by_id(project, session_id) if is_id(session_id, "con") else None
        if contact is None:
            raise NotFound("There is no such session: it is the id of a contact.", code="session_not_found")
        return contact

    return find


def _notifier(call: Call[B, Q], *, deleted: bool = False) -> Callable[[Transaction, Contact], int]:
    """Return a function that notifies agents of a memory change and returns the contact's storage key."""
    project, now = call.project, call.services.clock()

    def notify(tx: Transaction, contact: Contact) -> int:
        draft = memory_changed(contact.id, deleted=deleted)
        append_internal_event(tx, project, draft, contact_lane(contact.rowid), now)
        return contact.rowid

    return notify


def _entry(call: Call[B, Q]) -> Callable[[Reader], tuple[Contact, MemoryEntry]]:
    """Return a query for the contact and entry in the path, which raises NotFound."""
    session, name = _session(call), call.path["entry_name"]

    def find(reader: Reader) -> tuple[Contact, MemoryEntry]:
        contact = session(reader)
        entry = reader.memory_entry(contact.rowid, name)
        if entry is None:
            raise NotFound("The contact has no memory entry of this name.", code="memory_entry_not_found")
        return contact, entry

    return find
