"""Bodies and answers that the routes of organisations, projects and users share."""

from __future__ import annotations

from typing import Annotated

import trio
from pydantic import AfterValidator, Field

from deskwire.engine.errors import Unavailable
from deskwire.engine.people import Role
from deskwire.http.services import Services
from deskwire.http.validation import Body

PASSWORD_MIN = 10
WAITING_MAX = 50
"""Passwords that wait for one of the threads; half a minute's work."""


def _printable(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise ValueError("This must be printable text without blanks around it.")
    return text


def _email(text: str) -> str:
    local, at, domain = text.rpartition("@")
    if not (local and at and domain) or not text.isprintable() or " " in text or "@" in local:
        raise ValueError("This is no e-mail address.")
    return text


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
Email = Annotated[str, Field(min_length=3, max_length=254), AfterValidator(_email)]
NewPassword = Annotated[str, Field(min_length=PASSWORD_MIN, max_length=1_024)]
GivenPassword = Annotated[str, Field(min_length=1, max_length=1_024)]


class NameBody(Body):
    """A name."""

    name: Name


class MemberBody(Body):
    """Who becomes a member, and as what. Without a name the address is taken for one."""

    email: Email
    name: Name | None = None
    role: Role


class RoleBody(Body):
    """What a member becomes."""

    role: Role


class KeyBody(Body):
    """What the key is for; shown in lists."""

    label: Name


async def hash_password(services: Services, password: str) -> str:
    """The hash to store. Raises Unavailable (`sign_in_busy`) if too many wait."""
    room_for_password(services)
    threads = services.password_threads
    return await trio.to_thread.run_sync(services.passwords.hash, password, limiter=threads)


def room_for_password(services: Services) -> None:
    """Raise Unavailable (`sign_in_busy`) if too many passwords wait to be hashed or checked."""
    if services.password_threads.statistics().tasks_waiting >= WAITING_MAX:
        raise Unavailable("Too many are signing in at once.", code="sign_in_busy", retry_after_s=5)
