"""Signing in: e-mail address and password for an access token (decisions 2)."""

from __future__ import annotations

from typing import Annotated

import trio
from pydantic import Field

from deskwire.engine.clock import iso
from deskwire.engine.credentials import TOKEN_S
from deskwire.http.routing import OPEN, Answer, Call, Routes
from deskwire.http.validation import Body, Query

routes = Routes(OPEN)


class LoginBody(Body):
    """Who signs in."""

    email: Annotated[str, Field(min_length=3, max_length=320)]
    password: Annotated[str, Field(min_length=1, max_length=1_024)]


@routes.add("POST", "/auth/token", body=LoginBody)
async def issue_token(call: Call[LoginBody, Query]) -> Answer:
    """Get an access token for the dashboard endpoints, valid for an hour."""
    services, body = call.services, call.body
    user = services.store.peek(lambda reader: reader.user_by_email(body.email))
    checked = await trio.to_thread.run_sync(
        services.passwords.check, user, body.password, limiter=services.password_threads
    )
    now = services.clock()
    return {
        "token": services.tokens.issue(checked.id, now),
        "tokenType": "Bearer",
        "expiresAt": iso(now + TOKEN_S * 1000),
    }
