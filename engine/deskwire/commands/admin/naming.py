"""Finds what an order names: an organisation or project by its id or name, a user by id or e-mail address."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from deskwire.engine.accounts.people import Organisation, Project, User
from deskwire.engine.accounts.ports import OrganisationReader
from deskwire.engine.core.errors import Conflict, NotFound
from deskwire.engine.core.folding import fold_name
from deskwire.engine.core.ids import is_id

T = TypeVar("T", Organisation, Project)

ALL: Final = (1 << 63) - 1


def organisation_named(reader: OrganisationReader, handle: str | None) -> Organisation:
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


def project_named(reader: OrganisationReader, handle: str | None) -> Project:
    """Return the project with this id or name; the only one for None. Raises DomainError that says what to do."""
    if handle is not None and is_id(handle, "prj"):
        project = reader.project(handle)
        return _one([] if project is None else [project], handle, "project", "--project")
    projects = reader.projects(None, None, ALL, ALL)
    named = [project for project in projects if handle in (None, project.name)]
    if not named and handle is not None:
        named = [project for project in projects if fold_name(project.name) == fold_name(handle)]
    return _one(named, handle, "project", "--project")


def user_named(reader: OrganisationReader, handle: str) -> User:
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
