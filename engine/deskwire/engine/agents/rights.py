"""The right to an agent's stream, which is looked at again whenever a commit may have ended it."""

from __future__ import annotations

from typing import Final, Literal, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import PERMISSIONS, Project
from deskwire.engine.accounts.ports import AccountReader, OrganisationReader
from deskwire.engine.accounts.roles import project_of
from deskwire.engine.core.errors import NotFound

PERMISSION: Final = "conversations.read"
"""The permission that a stream needs: it shows all of a project's conversations."""

LostRight = Literal["session_ended", "permission_lost"]


class RightsReader(OrganisationReader, AccountReader, Protocol):
    """Queries on what a user may do."""

    def lasts(self, session_id: str) -> bool:
        """Tell whether there is a session with this id, or no access token of this id has ended."""


class Viewer(Struct, frozen=True):
    """The agent who has a stream open, as they were when it was opened.

    Args:
        user: storage key.
        generation: that of the password; another one means that all who had signed in are out.
        session: the id of the browser's session or of the access token.
    """

    user: int
    id: str
    name: str
    generation: int
    project: Project
    session: str | None = None


def find_lost_right(reader: RightsReader, viewer: Viewer) -> LostRight | None:
    """Return what the viewer has lost, as it is stored now; None if nothing."""
    user = reader.user(viewer.id)
    if user is None or user.generation != viewer.generation:
        return "session_ended"
    try:
        _, role = project_of(reader, user, viewer.project.id)
    except NotFound:
        return "permission_lost"
    return None if PERMISSION in PERMISSIONS[role] else "permission_lost"
