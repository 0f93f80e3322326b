"""Bodies and answers that the routes of organisations, projects and users share."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from deskwire.engine.accounts.identity.guessable import hash_chosen
from deskwire.engine.accounts.people import Role, User
from deskwire.http.api.input.validation import Body
from deskwire.http.api.pagination import Paged
from deskwire.http.api.services import Services

PASSWORD_MIN = 10


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


class AccountList(Paged):
    """A page of organisations, members, projects or keys."""

    refuses_empty_cursor = True


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


async def hash_new_password(services: Services, password: str, owner: User) -> str:
    """The hash of a password that its owner has chosen.

    Raises Invalid (`too_guessable`), or Unavailable (`sign_in_busy`).
    """
    return await services.hashing.run(
        None, hash_chosen, services.passwords, password, (owner.email, owner.name), "/newPassword"
    )


async def hash_password(services: Services, password: str) -> str:
    """The hash to store, for who has shown a credential. Raises Unavailable (`sign_in_busy`) if too many wait."""
    return await services.hashing.run(None, services.passwords.hash, password)
