"""The operator's commands: each has a name and validated arguments."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deskwire.engine.accounts.members import PasswordHandover
from deskwire.http.api.input.validation import Body
from deskwire.http.resources.accounts.credentials import CreateCredentialRequest, RotateCredentialRequest
from deskwire.http.resources.accounts.projects import ChangeProjectRequest, CreateProjectRequest
from deskwire.http.resources.accounts.requests import CreateKeyRequest, Email, Name, NewPassword

DAY_S = 86_400
Handle = Annotated[str, Field(min_length=1, max_length=254)]
"""An id, the name of an organisation or project if it is unique, or a user's e-mail address."""


RoleHandle = Annotated[str, Field(min_length=1, max_length=200)]
"""The id of a role, or the name of one of the organisation's own."""


class OrganisationName(Body):
    """A new organisation, or a new name for one."""

    organisation: Handle | None = None
    name: Name


class OrganisationEnd(Body):
    """An organisation to delete, optionally with the accounts that are members of no other organisation."""

    organisation: Handle
    with_accounts: bool = False


class NewProject(Body):
    """A new project in an organisation, which is optional if there is only one."""

    organisation: Handle | None = None
    project: CreateProjectRequest


class ProjectChange(Body):
    """Changes of a project, which is optional if there is only one."""

    project: Handle | None = None
    change: ChangeProjectRequest


class NewUser(Body):
    """A new account. Without a password, a one-time password is generated."""

    email: Email
    name: Name | None = None
    password: NewPassword | None = None
    organisation: Handle | None = None
    role: RoleHandle | None = None


class TestMail(Body):
    """A mail by which the operator checks the settings."""

    address: Email


class FirstOwnerLink(Body):
    """A one-time link for the first account. It has no arguments."""


class UserNamed(Body):
    """A user, by id or e-mail address."""

    user: Handle


class NewPasswordFor(Body):
    """A new password for an account. Without one, a one-time password is generated."""

    user: Handle
    password: NewPassword | None = None


class MemberRole(Body):
    """The role of a member in an organisation, which is optional if there is only one."""

    user: Handle
    organisation: Handle | None = None
    role: RoleHandle


class NewMember(MemberRole):
    """A user to add as a member; `password` decides about the password of another organisation's account."""

    password: PasswordHandover | None = None


class MemberGone(Body):
    """A user whose membership in an organisation ends."""

    user: Handle
    organisation: Handle | None = None


class UserName(Body):
    """A user."""

    user: Handle


class NewKey(CreateKeyRequest):
    """A new server key."""

    project: Handle | None = None


class NewCredential(CreateCredentialRequest):
    """A new machine credential."""

    project: Handle | None = None


class CredentialName(Body):
    """A machine credential by its id."""

    credential: Handle


class TokenName(Body):
    """An access token by its id."""

    token: Handle


class CredentialRotation(RotateCredentialRequest):
    """A new secret for a machine credential."""

    credential: Handle


class KeyName(Body):
    """A server key by its id."""

    key: Handle


class SecretRotation(Body):
    """A new secret for the installation; signatures of the old secret are accepted for `overlap_s` seconds."""

    overlap_s: Annotated[int, Field(ge=0, le=366 * DAY_S)]


class NewToken(Body):
    """An access token for a user, valid for this many seconds."""

    user: Handle
    ttl_s: Annotated[int, Field(ge=60, le=366 * DAY_S)]
