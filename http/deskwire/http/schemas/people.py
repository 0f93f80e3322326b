"""Organisations, projects and people as the API shows them (decisions 2, 3)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from deskwire.engine.accounts.people import Role
from deskwire.http.schemas.base import (
    Email,
    KeyId,
    Moment,
    OrganisationId,
    PersonName,
    ProjectId,
    Shape,
    UserId,
)


class AccessToken(Shape):
    """A token for the dashboard endpoints."""

    token: Annotated[str, Field(examples=["eyJhbGciOi…"])]
    token_type: Literal["Bearer"]
    expires_at: Moment


class User(Shape):
    """An account."""

    id: UserId
    email: Email
    name: PersonName
    created_at: Moment


class Permissions(Shape):
    """What a user may do in an organisation (contract 2.7)."""

    permissions: list[Annotated[str, Field(examples=["conversations.read"])]]
    roles: list[Role]


class Organisation(Shape):
    """An organisation, with the caller's role in it."""

    id: OrganisationId
    name: Annotated[str, Field(examples=["Example Ltd"])]
    role: Role
    created_at: Moment


class Member(Shape):
    """A member of an organisation."""

    id: UserId
    email: Email
    name: PersonName
    role: Role
    joined_at: Moment


class NewMember(Member):
    """A member as it was added. The one-time password is shown this once; null if users sign in elsewhere."""

    password: Annotated[str, Field(examples=["4tXb2LqW9sKd"])] | None


class ProjectSettings(Shape):
    """What a project has chosen for itself."""

    memory_enabled: Annotated[bool, Field(examples=[True])]
    archived_retention_days: Annotated[int, Field(ge=1, examples=[365])] | None
    primary_language: Annotated[str, Field(description="BCP 47.", examples=["en"])]
    languages: list[Annotated[str, Field(examples=["en"])]]
    upload_quota_bytes: Annotated[int, Field(ge=0, examples=[10_737_418_240])]


class Project(Shape):
    """A project: what conversations, keys and endpoints belong to."""

    id: ProjectId
    organisation_id: OrganisationId
    name: Annotated[str, Field(examples=["Shop"])]
    stream_key: Annotated[str, Field(examples=["x7Gt2kQ1bVnA"])]
    settings: ProjectSettings
    created_at: Moment


class ServerKey(Shape):
    """A server key. It is whole in the answer that makes it, and masked elsewhere."""

    id: KeyId
    project_id: ProjectId
    label: Annotated[str, Field(examples=["CRM"])]
    key: Annotated[str, Field(examples=["sk_…9fQz"])]
    created_at: Moment
    last_used_at: Moment | None
    revoked_at: Moment | None
