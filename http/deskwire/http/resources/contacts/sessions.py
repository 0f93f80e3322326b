"""The sessions of a contact in channels, for agents and for the project's own backend."""

from __future__ import annotations

from typing import Any, Final

from deskwire.engine.contacts.contact import Contact, find_contact, no_such_contact
from deskwire.engine.core.ids import is_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.customers.session import CustomerSession, no_such_session, session_view
from deskwire.engine.ports import Reader, Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.pagination import page
from deskwire.http.api.routing import Routes, dashboard, s2s
from deskwire.http.resources.accounts.requests import AccountList
from deskwire.http.resources.contacts.contacts import CONTACTS
from deskwire.http.schemas import customers as shapes
from deskwire.http.schemas.base import Deleted, page_of

routes = Routes(CONTACTS)
_AGENTS: Final = "/contacts/<contact_id>/sessions"
_BACKEND: Final = "/s2s/contacts/<user_id>/sessions"
_ENDS: Final = ("contact.session_ended",)
_NEWEST: Final = (1 << 63) - 1


@routes.add(
    "GET",
    _AGENTS,
    dashboard("contacts.read"),
    operation_id="dashboardListContactSessions",
    query=AccountList,
    answer=page_of(shapes.ContactSession),
)
async def list_for_agents(call: Call[Body, AccountList]) -> Answer:
    """List the live sessions of a contact in channels, newest first."""
    return await _list(call)


@routes.add(
    "GET",
    _BACKEND,
    s2s("contacts.read"),
    operation_id="listContactSessions",
    query=AccountList,
    answer=page_of(shapes.ContactSession),
)
async def list_for_backend(call: Call[Body, AccountList]) -> Answer:
    """List the live sessions of a contact in channels, newest first, by your own user id."""
    return await _list(call)


@routes.add(
    "DELETE",
    f"{_AGENTS}/<customer_session_id>",
    dashboard("contacts.manage"),
    operation_id="dashboardEndContactSession",
    answer=Deleted,
    records=_ENDS,
)
async def end_for_agents(call: Call[Body, Query]) -> Answer:
    """End a session of a contact. Its token is refused from then on, and its streams end."""
    return await _end(call)


@routes.add(
    "DELETE",
    f"{_BACKEND}/<customer_session_id>",
    s2s("contacts.manage"),
    operation_id="endContactSession",
    answer=Deleted,
    records=_ENDS,
)
async def end_for_backend(call: Call[Body, Query]) -> Answer:
    """End a session of a contact, such as after a sign-out on your site."""
    return await _end(call)


async def _list(call: Call[Body, AccountList]) -> Answer:
    query, now = call.query, call.services.clock()
    before = _NEWEST if query.row is None else query.row

    def read(reader: Reader) -> Any:
        return reader.customer_sessions(_contact(reader, call).rowid, now, before, query.rows)

    found = await call.services.store.read(InlineQuery(read))
    return page(query, found, session_view, _rowid)


async def _end(call: Call[Body, Query]) -> Answer:
    session_id, now = call.path["customer_session_id"], call.services.clock()

    def end(tx: Transaction) -> None:
        contact = _contact(tx, call)
        session = tx.customer_session_by_id(contact.rowid, session_id)
        if session is None or session.rowid is None or not tx.end_customer_session(session.rowid, now):
            raise no_such_session()
        tx.record_customer_session_end(session)

    await call.services.store.write(end)
    return {"id": session_id, "deleted": True}


def _contact(reader: Reader, call: Call[Any, Any]) -> Contact:
    """Return the contact in the path. Raises NotFound."""
    by_id = "contact_id" in call.path
    identifier = call.path["contact_id" if by_id else "user_id"]
    if by_id and not is_id(identifier, "con"):
        raise no_such_contact(None)
    return find_contact(reader, call.project.rowid, identifier, by_id=by_id)


def _rowid(session: CustomerSession) -> int:
    assert session.rowid is not None, "listed sessions are stored"
    return session.rowid
