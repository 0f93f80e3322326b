"""Projects of the user's organisations, their settings, and their server keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from deskwire.engine.accounts import projects
from deskwire.engine.accounts.machines import EVERY_PERMISSION, check_grant
from deskwire.engine.accounts.people import (
    DEFAULT_SETTINGS,
    Organisation,
    Project,
    ProjectSettings,
    ServerKey,
)
from deskwire.engine.accounts.ports import OrganisationReader, OrganisationTransaction
from deskwire.engine.accounts.projects import key_view, project_view, with_languages
from deskwire.engine.accounts.server_keys import hash_server_key, new_server_key, random_base62
from deskwire.engine.core.errors import NotFound
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.text import LANGUAGE_TAG_MAX
from deskwire.engine.core.values import replace
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query, nulls, refuse_null
from deskwire.http.api.pagination import page
from deskwire.http.api.routing import (
    MEDIUM,
    SIGNED_IN,
    Routes,
    Tag,
    fresh,
    in_organisation,
    in_project,
    personal,
)
from deskwire.http.resources.accounts.organisations import ONE as ORGANISATION
from deskwire.http.resources.accounts.requests import AccountList, CreateKeyRequest, Name
from deskwire.http.schemas import people as shapes
from deskwire.http.schemas.base import Deleted, page_of

_MANAGE = in_project("projects.manage")
routes = Routes(
    Tag("Projects", "Manage the projects of an organisation, their settings and their server keys."), _MANAGE
)
ONE = "/projects/<project_id>"
_KEYS = f"{ONE}/keys"
_DAYS_MAX = 36_500
_QUOTA_MAX = 1 << 50
_NEWEST = (1 << 63) - 1
_NULLABLE = frozenset({"archived_retention_days"})

LanguageTag = Annotated[str, Field(min_length=2, max_length=LANGUAGE_TAG_MAX)]


class ProjectSettingsInput(Body):
    """The settings to change; omitted settings keep their values. `archivedRetentionDays: null` keeps archived conversations."""

    memory_enabled: bool | None = None
    archived_retention_days: Annotated[int, Field(ge=1, le=_DAYS_MAX)] | None = None
    primary_language: LanguageTag | None = None
    languages: Annotated[list[LanguageTag], Field(min_length=1, max_length=50)] | None = None
    upload_quota_bytes: Annotated[int, Field(ge=0, le=_QUOTA_MAX)] | None = None


class CreateProjectRequest(Body):
    """A new project."""

    name: Name
    settings: Annotated[ProjectSettingsInput, Field(default_factory=ProjectSettingsInput)]


class ChangeProjectRequest(Body):
    """The fields to change."""

    name: Name | None = None
    settings: ProjectSettingsInput | None = None


def _require_deletion(call: Call[Any, Any]) -> None:
    """Raise Forbidden if the settings delete conversations and the caller may not."""
    settings = call.body.settings
    if settings is not None and "archived_retention_days" in settings.model_fields_set:
        call.access.require("conversations.delete")


async def _check_languages(call: Call[Any, Query]) -> None:
    if call.body.settings is not None:
        before = DEFAULT_SETTINGS if call.access.project is None else call.project.settings
        with_languages(before, call.body.settings.primary_language, call.body.settings.languages)


async def _check_key_end(call: Call[CreateKeyRequest, Query]) -> None:
    call.services.credential_life.end(call.body.expires_at, call.services.clock())


@routes.add(
    "GET",
    "/projects",
    SIGNED_IN,
    operation_id="listProjects",
    query=AccountList,
    answer=page_of(shapes.Project),
)
async def list_projects(call: Call[Body, AccountList]) -> Answer:
    """List the projects of all organisations of the signed-in user, newest first."""
    return await _list(call, None, call.user.rowid)


@routes.add(
    "GET",
    f"{ORGANISATION}/projects",
    in_organisation(),
    operation_id="listOrganisationProjects",
    query=AccountList,
    answer=page_of(shapes.Project),
)
async def list_organisation_projects(call: Call[Body, AccountList]) -> Answer:
    """List the projects of an organisation, newest first."""
    return await _list(call, call.organisation.rowid, None)


@routes.add(
    "POST",
    f"{ORGANISATION}/projects",
    in_organisation("projects.manage"),
    operation_id="createProject",
    body=CreateProjectRequest,
    limit=MEDIUM,
    answer=shapes.Project,
    errors=("project_limit_reached",),
    idempotent=True,
    further=(nulls(*_NULLABLE, within="settings", pointer="/settings"), _check_languages),
    records=("project.created", "project.changed"),
)
async def create_project(call: Call[CreateProjectRequest, Query]) -> Answer:
    """Create a project."""
    organisation, now = call.organisation, call.services.clock()
    project = new_project(call.body, organisation, now)
    return await call.commit(
        lambda tx: projects.make_project(tx, organisation.rowid, project),
        lambda made: project_view(made, organisation),
    )


@routes.add("GET", ONE, in_project(), operation_id="getProject", answer=shapes.Project)
async def get_project(call: Call[Body, Query]) -> Answer:
    """Fetch a project."""
    return project_view(call.project, call.organisation)


@routes.add(
    "PATCH",
    ONE,
    operation_id="changeProject",
    tells="project",
    body=ChangeProjectRequest,
    limit=MEDIUM,
    answer=shapes.Project,
    further=(nulls(), nulls(*_NULLABLE, within="settings", pointer="/settings"), _check_languages),
    records=("project.changed",),
)
async def change_project(call: Call[ChangeProjectRequest, Query]) -> Answer:
    """Change a project's name and settings.

    `archivedRetentionDays` deletes conversations, so changing it also needs the permission `conversations.delete`.
    """
    _require_deletion(call)
    body, identifier = call.body, call.project.id
    changed = await call.services.store.write(lambda tx: patch_project(tx, identifier, body))
    return project_view(changed, call.organisation)


@routes.add(
    "DELETE",
    ONE,
    fresh(personal(_MANAGE)),
    operation_id="deleteProject",
    answer=Deleted,
    errors=("project_not_empty",),
    records=("project.deleted", "key.revoked", "credential.revoked"),
)
async def delete_project(call: Call[Body, Query]) -> Answer:
    """Delete a project that holds no data, with its server keys and machine credentials."""
    identifier, now = call.project.id, call.services.clock()
    await call.services.store.write(lambda tx: projects.remove_project(tx, found(tx, identifier), now))
    return {"id": identifier, "deleted": True}


@routes.add("GET", _KEYS, operation_id="listKeys", query=AccountList, answer=page_of(shapes.ServerKey))
async def list_keys(call: Call[Body, AccountList]) -> Answer:
    """List the server keys of a project, newest first, masked. Revoked keys are included."""
    project, query, before = call.project.rowid, call.query, rows_before(call.query)
    keys = await call.services.store.read(lambda reader: reader.keys(project, before, query.rows))
    return page(query, keys, key_view, lambda key: key.rowid)


@routes.add(
    "POST",
    _KEYS,
    fresh(personal(_MANAGE)),
    operation_id="createKey",
    body=CreateKeyRequest,
    answer=shapes.ServerKey,
    errors=("key_limit_reached",),
    idempotent=True,
    further=(_check_key_end,),
    records=("key.created",),
)
async def create_key(call: Call[CreateKeyRequest, Query]) -> Answer:
    """Create a server key. The response shows the key once; a repeated request masks it.

    A server key can make all S2S calls, so a user needs every permission to create one. Calls with it are refused from
    `expiresAt` on, with 401 `key_expired`. Streams that it has authorized by then and the project's webhook endpoints go on.
    The project's health lists it in the last seven days before.
    """
    check_grant(call.access.permissions, EVERY_PERMISSION)
    identifier, label, now = call.project.id, call.body.label, call.services.clock()
    expires_at = call.services.credential_life.end(call.body.expires_at, now)
    secret, key_id = new_server_key(), new_id("key", now)

    def make(tx: OrganisationTransaction) -> ServerKey:
        project = found(tx, identifier)
        hashed, tail = hash_server_key(secret), secret[-4:]
        return projects.make_key(tx, project, key_id, hashed, tail, label, now, expires_at)

    return key_view(await call.services.store.write(call.around(make, key_view)), secret)


@routes.add(
    "POST",
    f"{_KEYS}/<key_id>/revoke",
    fresh(_MANAGE),
    operation_id="revokeKey",
    answer=shapes.ServerKey,
    records=("key.revoked",),
)
async def revoke_key(call: Call[Body, Query]) -> Answer:
    """Revoke a server key. Its calls are refused, and the streams that it authorized end. It stays listed.

    A server key can make all S2S calls, so a machine credential needs every permission to revoke one.
    """
    check_grant(call.access.permissions, EVERY_PERMISSION)
    key_id, project, now = call.path["key_id"], call.project, call.services.clock()
    return key_view(await call.services.store.write(lambda tx: projects.revoke_key(tx, key_id, project, now)))


def new_project(body: CreateProjectRequest, organisation: Organisation, now: int) -> Project:
    """Return a project that is not stored yet. Raises Invalid."""
    settings = _settings(DEFAULT_SETTINGS, body.settings)
    return Project(0, new_id("prj", now), organisation.rowid, body.name, random_base62(12), settings, now)


def patch_project(tx: OrganisationTransaction, project_id: str, body: ChangeProjectRequest) -> Project:
    """Change a project, and return it. Raises NotFound and Invalid."""
    before = found(tx, project_id)
    refuse_null(body)
    settings = before.settings if body.settings is None else _settings(before.settings, body.settings)
    after = replace(before, name=body.name or before.name, settings=settings)
    if after != before:
        tx.save_project(after)
    return after


def found(reader: OrganisationReader, project_id: str) -> Project:
    """Return the project with this id. Raises NotFound."""
    project = reader.project(project_id)
    if project is None:
        raise NotFound("There is no such project.", code="project_not_found")
    return project


def _settings(before: ProjectSettings, body: ProjectSettingsInput) -> ProjectSettings:
    refuse_null(body, _NULLABLE, "/settings")
    after = with_languages(before, body.primary_language, body.languages)
    given = body.model_dump(exclude_unset=True, exclude={"primary_language", "languages"})
    return replace(after, **given)


async def _list(call: Call[Body, AccountList], organisation: int | None, user: int | None) -> Answer:
    query, before = call.query, rows_before(call.query)

    def read(reader: OrganisationReader) -> tuple[Sequence[Project], dict[int, Organisation]]:
        listed = reader.projects(organisation, user, before, query.rows)
        return listed, {each: reader.organisation_of(each) for each in {one.organisation for one in listed}}

    listed, owners = await call.services.store.read(read)
    return page(
        query,
        listed,
        lambda project: project_view(project, owners[project.organisation]),
        lambda project: project.rowid,
    )


def rows_before(query: AccountList) -> int:
    """Return the storage key below which the rows of a page are."""
    row = query.row
    return _NEWEST if row is None else row
