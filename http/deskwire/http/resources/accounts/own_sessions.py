"""The sessions of the signed-in user: listed, and ended individually or together (ADR 15)."""

from __future__ import annotations

from typing import Final

from deskwire.engine.accounts.sessions import end_own_session, session_view
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.pagination import page
from deskwire.http.api.routing import SIGNED_IN, Routes
from deskwire.http.resources.accounts import users
from deskwire.http.resources.accounts.requests import AccountList
from deskwire.http.schemas import people as shapes
from deskwire.http.schemas.base import Deleted, page_of

routes = Routes(users.routes.tag, SIGNED_IN)

_ALL: Final = "/users/me/sessions"
_NEWEST: Final = (1 << 63) - 1


class OthersQuery(Query):
    """The sessions to end: all, or with `others` all except the caller's."""

    others: bool = False


@routes.add(
    "GET", _ALL, operation_id="listSessions", query=AccountList, answer=page_of(shapes.BrowserSessionSummary)
)
async def list_sessions(call: Call[Body, AccountList]) -> Answer:
    """List the sessions of the signed-in user, newest first. `current` is the caller's."""
    user, query, current = call.user.rowid, call.query, call.access.session
    over = call.services.sessions.life.over(call.services.clock())
    before = _NEWEST if query.row is None else query.row
    found = await call.services.store.read(lambda reader: reader.sessions_of(user, over, before, query.rows))
    return page(
        query,
        found,
        lambda session: session_view(session, None if current is None else current.id),
        lambda session: session.rowid,
    )


@routes.add(
    "DELETE",
    _ALL,
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
    operation_id="endSessionById",
    answer=Deleted,
    records=("account.sessions_ended",),
)
async def end_one(call: Call[Body, Query]) -> Answer:
    """End a session of the signed-in user. Its next call is refused, and its streams end."""
    session_id, user = call.path["browser_session_id"], call.user.rowid
    await call.services.store.write(lambda tx: end_own_session(tx, user, session_id))
    return {"id": session_id, "deleted": True}
