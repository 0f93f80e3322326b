"""The sessions of users: listed, and ended individually or together, by their users or by managers of members (ADR 15)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from deskwire.engine.accounts import members
from deskwire.engine.accounts.roles import MANAGE
from deskwire.engine.accounts.sessions import BrowserSession, end_one_session, session_view
from deskwire.engine.ports import Reader, Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.pagination import page
from deskwire.http.api.routing import SIGNED_IN, Routes, fresh, in_organisation
from deskwire.http.resources.accounts import members as member_routes
from deskwire.http.resources.accounts import users
from deskwire.http.resources.accounts.organisations import ONE as ORGANISATION
from deskwire.http.resources.accounts.requests import AccountList
from deskwire.http.schemas import people as shapes
from deskwire.http.schemas.base import Deleted, page_of

routes = Routes(users.routes.tag, SIGNED_IN)

_ALL: Final = "/users/me/sessions"
_OF_MEMBER: Final = f"{ORGANISATION}/members/<user_id>/sessions"
_MANAGERS: Final = in_organisation(MANAGE)
_NEWEST: Final = (1 << 63) - 1


class OthersQuery(Query):
    """The sessions to end: all, or with `others` all except the caller's."""

    others: bool = False


@routes.add(
    "GET", _ALL, operation_id="listSessions", query=AccountList, answer=page_of(shapes.BrowserSessionSummary)
)
async def list_sessions(call: Call[Body, AccountList]) -> Answer:
    """List the sessions of the signed-in user, newest first, each with the way of its sign-in. `current` is the caller's."""
    return await _listed(call, lambda _: call.user.rowid)


@routes.add(
    "DELETE",
    _ALL,
    fresh(SIGNED_IN),
    operation_id="endSessions",
    query=OthersQuery,
    answer=shapes.SessionsEnded,
    records=("account.sessions_ended",),
)
async def end_all(call: Call[Body, OthersQuery]) -> Answer:
    """End all sessions of the signed-in user, or with `others=true` all except the caller's. Access tokens stay."""
    current = call.access.session if call.query.others else None
    but, user = None if current is None else current.id, call.user.rowid
    return {"ended": await call.services.store.write(lambda tx: tx.end_sessions(user, but))}


@routes.add(
    "DELETE",
    f"{_ALL}/<browser_session_id>",
    fresh(SIGNED_IN),
    operation_id="endSessionById",
    answer=Deleted,
    records=("account.sessions_ended",),
)
async def end_one(call: Call[Body, Query]) -> Answer:
    """End a session of the signed-in user. Its next call is refused, and its streams end."""
    session_id, user = call.path["browser_session_id"], call.user.rowid
    await call.services.store.write(lambda tx: end_one_session(tx, user, session_id))
    return {"id": session_id, "deleted": True}


@routes.add(
    "GET",
    _OF_MEMBER,
    _MANAGERS,
    operation_id="listMemberSessions",
    query=AccountList,
    answer=page_of(shapes.BrowserSessionSummary),
)
async def list_member_sessions(call: Call[Body, AccountList]) -> Answer:
    """List the sessions of a member, newest first, for any organisation."""
    organisation, user_id = call.organisation.rowid, call.path["user_id"]
    return await _listed(call, lambda reader: members.member_of(reader, organisation, user_id).user.rowid)


@routes.add(
    "DELETE",
    f"{_OF_MEMBER}/<browser_session_id>",
    fresh(_MANAGERS),
    operation_id="endMemberSession",
    answer=Deleted,
    errors=("owner_protected",),
    records=("account.sessions_ended",),
)
async def end_member_session(call: Call[Body, Query]) -> Answer:
    """End a session of a member, and its streams. An owner's sessions can only be ended by an owner."""
    organisation, user_id, session_id = (
        call.organisation.rowid,
        call.path["user_id"],
        call.path["browser_session_id"],
    )
    actor = member_routes.acting_member(call)

    def end(tx: Transaction) -> None:
        member = members.reachable_member(tx, actor(tx), organisation, user_id)
        end_one_session(tx, member.user.rowid, session_id)

    await call.services.store.write(end)
    return {"id": session_id, "deleted": True}


async def _listed(call: Call[Any, AccountList], owner: Callable[[Reader], int]) -> Answer:
    """Return a page of the unexpired sessions of the user with the storage key that `owner` returns."""
    query, current, now = call.query, call.access.session, call.services.clock()
    life, before = call.services.sessions.life, _NEWEST if query.row is None else query.row

    def find(reader: Reader) -> Sequence[BrowserSession]:
        user = owner(reader)
        over = life.within(reader.session_limits(user)).over(now)
        return reader.sessions_of(user, over, before, query.rows)

    return page(
        query,
        await call.services.store.read(find),
        lambda session: session_view(session, None if current is None else current.id),
        lambda session: session.rowid,
    )
