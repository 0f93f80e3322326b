"""Access tokens: listed, and ended one by one, by their users or by managers of members (ADR 15)."""

from __future__ import annotations

from typing import Any, Final

from deskwire.engine.accounts import members
from deskwire.engine.accounts.access_tokens import (
    AccessToken,
    access_token_view,
    end_shown_token,
    end_token,
)
from deskwire.engine.accounts.roles import MANAGE
from deskwire.engine.core.errors import Conflict
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

_OWN: Final = "/users/me/tokens"
_OF_MEMBER: Final = f"{ORGANISATION}/members/<user_id>/tokens"
_MANAGERS: Final = in_organisation(MANAGE)
_NEWEST: Final = (1 << 63) - 1
_RECORDED: Final = ("token.ended",)
_TOO_MANY: Final = "too_many_ended_tokens"


@routes.add(
    "POST",
    "/auth/token/revoke",
    operation_id="endToken",
    answer=shapes.TokenEnded,
    errors=("no_access_token", "token_not_found", _TOO_MANY),
    records=_RECORDED,
)
async def end_this(call: Call[Body, Query]) -> Answer:
    """Sign out: end the access token that makes the call, including one of an identity provider, and its streams.

    From then on, every node refuses it with 401 `token_ended`. Other tokens and sessions of the user stay.
    """
    shown, user, now = call.access.token, call.user, call.services.clock()
    if shown is None:
        raise Conflict(
            "The call was made with a browser session instead of an access token; `DELETE /v3/auth/session` ends the session.",
            code="no_access_token",
        )
    generation = user.generation
    token = AccessToken(shown.token, user.id, "elsewhere", "", generation, now, shown.expires_at)
    await call.services.store.write(lambda tx: end_shown_token(tx, token, user, now))
    return {"id": token.id, "ended": True}


@routes.add("GET", _OWN, operation_id="listTokens", query=AccountList, answer=page_of(shapes.TokenSummary))
async def list_tokens(call: Call[Body, AccountList]) -> Answer:
    """List the valid access tokens of the signed-in user, newest first. Tokens of an identity provider are not listed."""
    return await _listed(call, call.user.rowid)


@routes.add(
    "DELETE",
    f"{_OWN}/<token_id>",
    operation_id="endTokenById",
    answer=Deleted,
    errors=(_TOO_MANY,),
    records=_RECORDED,
)
async def end_own(call: Call[Body, Query]) -> Answer:
    """End an access token of the signed-in user. Its next call is refused, and its streams end."""
    token_id, user, now = call.path["token_id"], call.user.rowid, call.services.clock()
    await call.services.store.write(lambda tx: end_token(tx, token_id, user, now))
    return {"id": token_id, "deleted": True}


@routes.add(
    "GET",
    _OF_MEMBER,
    _MANAGERS,
    operation_id="listMemberTokens",
    query=AccountList,
    answer=page_of(shapes.TokenSummary),
)
async def list_member_tokens(call: Call[Body, AccountList]) -> Answer:
    """List the valid access tokens of a member, newest first, for any organisation."""
    organisation, user_id = call.organisation.rowid, call.path["user_id"]

    def find(reader: Reader) -> int:
        return members.member_of(reader, organisation, user_id).user.rowid

    return await _listed(call, await call.services.store.read(find))


@routes.add(
    "DELETE",
    f"{_OF_MEMBER}/<token_id>",
    fresh(_MANAGERS),
    operation_id="endMemberToken",
    answer=Deleted,
    errors=("owner_protected", "permission_not_held", _TOO_MANY),
    records=_RECORDED,
)
async def end_member_token(call: Call[Body, Query]) -> Answer:
    """End an access token of a member. An owner's tokens can only be ended by an owner."""
    organisation, user_id, token_id = call.organisation.rowid, call.path["user_id"], call.path["token_id"]
    actor, now = member_routes.acting_member(call), call.services.clock()

    def end(tx: Transaction) -> None:
        member = members.reachable_member(tx, actor(tx), organisation, user_id)
        end_token(tx, token_id, member.user.rowid, now)

    await call.services.store.write(end)
    return {"id": token_id, "deleted": True}


async def _listed(call: Call[Any, AccountList], user: int) -> Answer:
    query, now, shown = call.query, call.services.clock(), call.access.token
    before = _NEWEST if query.row is None else query.row
    found = await call.services.store.read(
        lambda reader: reader.access_tokens_of(user, now, before, query.rows)
    )
    current = None if shown is None else shown.token
    return page(query, found, lambda token: access_token_view(token, current), lambda token: token.rowid)
