"""Fields, bodies and queries shared by the routes of organisations, projects and users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from deskwire.engine.accounts.people import BuiltInRole
from deskwire.http.api.input.validation import Body
from deskwire.http.api.pagination import Paged

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


Name = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_printable)]
Email = Annotated[str, Field(min_length=3, max_length=254), AfterValidator(_email)]
NewPassword = Annotated[str, Field(min_length=PASSWORD_MIN, max_length=1_024)]
GivenPassword = Annotated[str, Field(min_length=1, max_length=1_024)]


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
    role: BuiltInRole


class ChangeMemberRequest(Body):
    """The new role of a member."""

    role: BuiltInRole


class CreateKeyRequest(Body):
    """The label of a server key, shown in lists."""

    label: Name
