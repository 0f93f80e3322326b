"""Carries out the operator's orders on a store."""

from __future__ import annotations

import pwd
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

from deskwire.engine.accounts.credentials import Passwords, Tokens
from deskwire.engine.accounts.people import Organisation, Project, User
from deskwire.engine.audit.naming import InNameOf
from deskwire.engine.audit.trail import Actor, By
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Conflict, DomainError, NotFound
from deskwire.engine.core.ids import is_id
from deskwire.engine.ports import Reader, Store
from deskwire.http.api.input.validation import Body
from deskwire.program.rotation import Rotation

B = TypeVar("B", bound=Body)
T = TypeVar("T", Organisation, Project)

ALL: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class AdminContext:
    """The services that orders are carried out with.

    Args:
        tokens: the issuer of access tokens; None if the installation does not accept its own.
        rotation: replaces the installation's secret.
    """

    store: Store
    clock: Clock
    passwords: Passwords
    tokens: Callable[[], Tokens | None]
    rotation: Callable[[], Rotation]

    def signed(self, user: int) -> AdminContext:
        """Return the same, whose store writes in the name of the operator who is this user of the machine."""
        by = By(Actor("operator", _login(user)), self.clock())
        return replace(self, store=InNameOf(by, self.store))


def _login(user: int) -> str:
    try:
        return pwd.getpwuid(user).pw_name
    except KeyError:  # a container's user, say
        return str(user)


Result = Mapping[str, Any]
Operation = Callable[[AdminContext, Any], Awaitable[Result]]
OPERATIONS: Final[dict[str, tuple[type[Body], Operation]]] = {}
LOOKS: Final[set[str]] = set()
"""Operations that write nothing; they bring no database up to date."""


def operation(
    name: str, order: type[B], *, looks: bool = False
) -> Callable[[Callable[[AdminContext, B], Awaitable[Result]]], Operation]:
    """Register the decorated function as what carries out orders of this name."""

    def register(function: Callable[[AdminContext, B], Awaitable[Result]]) -> Operation:
        OPERATIONS[name] = (order, function)
        if looks:
            LOOKS.add(name)
        return function

    return register


def organisation_named(reader: Reader, handle: str | None) -> Organisation:
    """Return the organisation with this id or name; the only one for None. Raises DomainError that says what to do."""
    if handle is not None and is_id(handle, "org"):
        organisation = reader.organisation(handle)
        return _one([] if organisation is None else [organisation], handle, "organisation", "--org")
    organisations = reader.organisations()
    return _one(
        [organisation for organisation in organisations if handle in (None, organisation.name)],
        handle,
        "organisation",
        "--org",
    )


def project_named(reader: Reader, handle: str | None) -> Project:
    """Return the project with this id or name; the only one for None. Raises DomainError that says what to do."""
    if handle is not None and is_id(handle, "prj"):
        project = reader.project(handle)
        return _one([] if project is None else [project], handle, "project", "--project")
    projects = reader.projects(None, None, ALL, ALL)
    return _one(
        [project for project in projects if handle in (None, project.name)], handle, "project", "--project"
    )


def user_named(reader: Reader, handle: str) -> User:
    """Return the user with this id or e-mail address. Raises NotFound."""
    user = reader.user(handle) if is_id(handle, "usr") else reader.user_by_email(handle)
    if user is None:
        raise NotFound(f"There is no user {handle}.", code="user_not_found")
    return user


def _one(candidates: Sequence[T], handle: str | None, what: str, option: str) -> T:
    match candidates, handle:
        case [only], _:
            return only
        case [], None:
            raise NotFound(f"There is no {what} yet.", code=f"{what}_not_found")
        case [], _:
            raise NotFound(f"There is no {what} {handle}.", code=f"{what}_not_found")
        case _, None:
            raise Conflict(
                f"There are {len(candidates)} {what}s; choose one with {option}.", code="ambiguous"
            )
        case _:
            ids = ", ".join(candidate.id for candidate in candidates)
            raise Conflict(f"Several {what}s have this name; use an id instead ({ids}).", code="ambiguous")


def refusal(error: DomainError) -> dict[str, Any]:
    """Return a refusal as the command receives it."""
    problems = [f"{problem.pointer}: {problem.message}" for problem in getattr(error, "problems", ())]
    return {"code": error.reason, "detail": error.detail, "problems": problems}
