"""The operator's orders: a name and a checked set of arguments each."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from deskwire.engine.accounts.members import Handover
from deskwire.engine.accounts.people import Role
from deskwire.http.api.input.validation import Body
from deskwire.http.resources.accounts.credentials import CredentialBody, RotateBody
from deskwire.http.resources.accounts.projects import ProjectBody, ProjectPatch
from deskwire.http.resources.accounts.requests import Email, Name, NewPassword

DAY_S = 86_400
Handle = Annotated[str, Field(min_length=1, max_length=254)]
"""An id; or the name of an organisation or project if only one has it, or a user's e-mail address."""


class OrganisationName(Body):
    """A new organisation, or another name for one."""

    organisation: Handle | None = None
    name: Name


class OrganisationEnd(Body):
    """An organisation that is deleted, perhaps with the accounts that are members of no other."""

    organisation: Handle
    with_accounts: bool = False


class NewProject(Body):
    """A new project in an organisation; that one can be left out if there is only one."""

    organisation: Handle | None = None
    project: ProjectBody


class ProjectChange(Body):
    """Changes of a project; it can be left out if there is only one."""

    project: Handle | None = None
    change: ProjectPatch


class NewUser(Body):
    """A new account. Without a password a one-time password is made up."""

    email: Email
    name: Name | None = None
    password: NewPassword | None = None
    organisation: Handle | None = None
    role: Role | None = None


class NewPasswordFor(Body):
    """Another password for an account. Without one a one-time password is made up."""

    user: Handle
    password: NewPassword | None = None


class MemberRole(Body):
    """A user as a member of an organisation, which can be left out if there is only one."""

    user: Handle
    organisation: Handle | None = None
    role: Role


class NewMember(MemberRole):
    """A user who becomes a member; `password` says what becomes of it if the account is another organisation's."""

    password: Handover | None = None


class MemberGone(Body):
    """A user who is a member of an organisation no longer."""

    user: Handle
    organisation: Handle | None = None


class UserName(Body):
    """A user."""

    user: Handle


class NewKey(Body):
    """A new server key."""

    project: Handle | None = None
    label: Name


class NewCredential(CredentialBody):
    """A new machine credential."""

    project: Handle | None = None


class CredentialName(Body):
    """A machine credential by its id."""

    credential: Handle


class TokenName(Body):
    """An access token by its id."""

    token: Handle


class CredentialRotation(RotateBody):
    """A new secret for a machine credential."""

    credential: Handle


class KeyName(Body):
    """A server key by its id."""

    key: Handle


class SecretRotation(Body):
    """A new secret of the installation; for so many seconds what the old one signed is accepted."""

    overlap_s: Annotated[int, Field(ge=0, le=366 * DAY_S)]


class NewToken(Body):
    """An access token for a user, valid for this many seconds."""

    user: Handle
    ttl_s: Annotated[int, Field(ge=60, le=366 * DAY_S)]
