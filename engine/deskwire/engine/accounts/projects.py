"""Projects, their server keys, and the deletion of organisations. Each function is a job for one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from deskwire.engine.accounts.people import Organisation, Project, ProjectSettings, ServerKey
from deskwire.engine.accounts.ports import OrganisationTransaction
from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.errors import Conflict, Invalid, NotFound, Problem
from deskwire.engine.core.text import canonical_language_tag
from deskwire.engine.core.values import replace

SERVER_KEYS_MAX: Final = 100
"""The server keys of a project that may be in force at once."""
PROJECTS_MAX: Final = 1_000
"""The projects that an organisation may have."""


def project_view(project: Project, organisation: Organisation) -> dict[str, Any]:
    """Return the project object."""
    return {
        "id": project.id,
        "organisationId": organisation.id,
        "name": project.name,
        "streamKey": project.stream_key,
        "settings": settings_view(project.settings),
        "createdAt": iso(project.created_at),
    }


def settings_view(chosen: ProjectSettings) -> dict[str, Any]:
    """Return the settings of a project object."""
    return {
        "memoryEnabled": chosen.memory_enabled,
        "archivedRetentionDays": chosen.archived_retention_days,
        "primaryLanguage": chosen.primary_language,
        "languages": list(chosen.languages),
        "uploadQuotaBytes": chosen.upload_quota_bytes,
    }


def key_view(key: ServerKey, secret: str | None = None) -> dict[str, Any]:
    """Return the server key object.

    The key itself is masked unless `secret` is given, at its creation.
    """
    return {
        "id": key.id,
        "projectId": key.project.id,
        "label": key.label,
        "key": secret or f"sk_…{key.tail}",
        "createdAt": iso(key.created_at),
        "lastUsedAt": iso_or_none(key.last_used_at),
        "expiresAt": iso_or_none(key.expires_at),
        "revokedAt": iso_or_none(key.revoked_at),
    }


def with_languages(
    settings: ProjectSettings, primary: str | None, languages: Sequence[str] | None
) -> ProjectSettings:
    """Return the settings with other languages, each tag in its usual case.

    Raises Invalid for each tag that is not well-formed or repeated, and for a primary language that is not among them.
    """
    tags, problems = list(settings.languages), list[Problem]()
    if languages is not None:
        tags = []
        for index, text in enumerate(languages):
            tag = canonical_language_tag(text)
            if tag is None:
                problems.append(_no_tag(f"/settings/languages/{index}"))
            elif tag in tags:
                problems.append(Problem(f"/settings/languages/{index}", "repeated", "This is there already."))
            else:
                tags.append(tag)
    first = settings.primary_language if primary is None else canonical_language_tag(primary)
    if first is None:
        problems.append(_no_tag("/settings/primaryLanguage"))
    elif first not in tags and not problems:
        message = "The primary language must be one of the languages."
        problems.append(Problem("/settings/primaryLanguage", "not_allowed", message))
    if problems or first is None:
        raise Invalid(*problems)
    return replace(settings, primary_language=first, languages=tuple(tags))


def make_project(tx: OrganisationTransaction, organisation: int, project: Project) -> Project:
    """Store a new project. Raises Conflict (`project_limit_reached`)."""
    if len(tx.projects(organisation, None, 1 << 62, PROJECTS_MAX)) == PROJECTS_MAX:
        raise Conflict(f"An organisation has at most {PROJECTS_MAX} projects.", code="project_limit_reached")
    stored = tx.insert_project(project.id, organisation, project.name, project.stream_key, project.created_at)
    stored = replace(stored, settings=project.settings)
    tx.save_project(stored)
    return stored


def remove_project(tx: OrganisationTransaction, project: Project, at: int) -> None:
    """Remove an empty project and revoke its keys. Raises Conflict (`project_not_empty`)."""
    if tx.project_is_used(project.rowid):
        raise Conflict(
            "The project holds contacts, events, endpoints or other data; only an empty one can be removed.",
            code="project_not_empty",
        )
    tx.remove_project(project.rowid, at)


def make_key(
    tx: OrganisationTransaction,
    project: Project,
    key_id: str,
    key_hash: bytes,
    tail: str,
    label: str,
    at: int,
    expires_at: int | None = None,
) -> ServerKey:
    """Store a new server key. Raises Conflict (`key_limit_reached`)."""
    if tx.keys_in_force(project.rowid, at) >= SERVER_KEYS_MAX:
        raise Conflict(
            f"A project has at most {SERVER_KEYS_MAX} keys; revoke one first.", code="key_limit_reached"
        )
    tx.insert_key(key_id, project.rowid, key_hash, tail, label, at, expires_at)
    return key_of(tx, key_id, project)


def revoke_key(tx: OrganisationTransaction, key_id: str, project: Project | None, at: int) -> ServerKey:
    """Revoke a server key, unless it is revoked already. Raises NotFound."""
    key = key_of(tx, key_id, project)
    if key.revoked_at is None:
        tx.revoke_key(key.rowid, at)
    return key_of(tx, key_id, project)


def key_of(tx: OrganisationTransaction, key_id: str, project: Project | None) -> ServerKey:
    """Return the key with this id, of this project if one is given.

    Raises NotFound (`key_not_found`).
    """
    key = tx.key(key_id)
    if key is None or (project is not None and key.project.id != project.id):
        raise NotFound("There is no such server key.", code="key_not_found")
    return key


def _no_tag(pointer: str) -> Problem:
    return Problem(pointer, "invalid_format", "This is no language tag (BCP 47), such as en or pt-BR.")


_ALL: Final = (1 << 63) - 1


def delete_organisation(
    tx: OrganisationTransaction, organisation: Organisation, at: int, *, with_accounts: bool
) -> list[str]:
    """Delete an organisation with its empty projects and all memberships, for the operator (ADR 3).

    Args:
        with_accounts: whether to delete accounts that are left without memberships.

    Returns the ids of deleted accounts. Raises Conflict (`organisation_not_empty`), with nothing changed, naming the projects
    that have data.
    """
    projects = tx.projects(organisation.rowid, None, _ALL, _ALL)
    if holding := [f"{each.name} ({each.id})" for each in projects if tx.project_is_used(each.rowid)]:
        raise Conflict(
            f"These projects of {organisation.name} hold contacts, events, endpoints or other data: {', '.join(holding)}. Only "
            "an organisation whose projects are empty can be deleted.",
            code="organisation_not_empty",
        )
    for project in projects:
        remove_project(tx, project, at)
    gone = []
    for member in tx.members(organisation.rowid, 0, _ALL):
        tx.delete_membership(organisation.rowid, member.user.rowid)
        if with_accounts and not tx.memberships(member.user.rowid, (-1, -1), 1):
            tx.delete_user(member.user.rowid, at)
            gone.append(member.user.id)
    tx.delete_organisation(organisation.rowid, at)
    return gone
