"""Fields, bodies and queries shared by the routes of organisations, projects and users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from deskwire.engine.accounts.roles import role_named
from deskwire.engine.accounts.sessions import IDLE_MIN_S, LONGEST_MIN_S
from deskwire.http.api.calls import Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.pagination import Paged
from deskwire.http.resources.fields import Time

PASSWORD_MIN = 10


def _printable(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise ValueError("This must be printable text without blanks at its ends.")
    return text


def _email(text: str) -> str:
    local, at, domain = text.rpartition("@")
    if not (local and at and domain) or not text.isprintable() or " " in text or "@" in local:
        raise ValueError("This is not an e-mail address.")
    return text


printable: Final = AfterValidator(_printable)
"""Refuses text with control characters, or with blanks at its ends."""

Name = Annotated[str, Field(min_length=1, max_length=200), printable]
Email = Annotated[str, Field(min_length=3, max_length=254), AfterValidator(_email)]
NewPassword = Annotated[str, Field(min_length=PASSWORD_MIN, max_length=1_024)]
GivenPassword = Annotated[str, Field(min_length=1, max_length=1_024)]


RoleId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=40,
        description="`owner`, `admin`, `agent`, `viewer`, or the id of one of the organisation's own roles.",
        examples=["agent"],
    ),
]


async def check_role(call: Call[Any, Query]) -> None:
    """Raise Invalid if the organisation does not have the role in the body."""
    role = call.body.role
    if role is not None:
        await call.services.store.read(lambda reader: role_named(reader, call.organisation.rowid, role))


GivenCode = Annotated[str, Field(min_length=1, max_length=40)]


ChallengeSecret = Annotated[str, Field(min_length=1, max_length=64)]


def exactly_one(body: BaseModel, names: Sequence[str]) -> None:
    """Raise an error of validation unless the body has exactly one of these fields."""
    if sum(getattr(body, name) is not None for name in names) != 1:
        shown = ", ".join(to_camel(name) for name in names)
        raise PydanticCustomError("one_of", "This needs exactly one of {names}.", {"names": shown})


class AccountList(Paged):
    """A page of organisations, members, projects or keys."""

    refuses_empty_cursor = True


class RenameRequest(Body):
    """The new name."""

    name: Name


class AddMemberRequest(Body):
    """The person to add to the organisation, with a role. `name` defaults to the address."""

    email: Email
    name: Name | None = None
    role: RoleId


class ChangeMemberRequest(Body):
    """The new role of a member."""

    role: RoleId


class ChangeOrganisationRequest(Body):
    """The fields to change. Null removes a limit of sessions, so that the installation's applies.

    A limit is in seconds and at most the installation's: `sessionIdleS` since the last use of a session, `sessionMaxS` since its start.
    """

    name: Name | None = None
    require_second_factor: bool | None = None
    session_idle_s: Annotated[int, Field(ge=IDLE_MIN_S)] | None = None
    session_max_s: Annotated[int, Field(ge=LONGEST_MIN_S)] | None = None


class CreateKeyRequest(Body):
    """The label of a server key, shown in lists, and its expiry. Without `expiresAt` it does not expire, or as late as the operator allows."""

    label: Name
    expires_at: Time | None = None
