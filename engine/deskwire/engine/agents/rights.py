"""The right to an agent's stream, read from the store.

`AgentStreams` looks it up at the opening, and again after each commit that may have ended it.
"""

from __future__ import annotations

from typing import Final, Literal, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.ports import AccountReader, OrganisationReader
from deskwire.engine.accounts.roles import project_of
from deskwire.engine.core.errors import NotFound

# The permission that a stream requires, because it shows all conversations of a project.
PERMISSION: Final = "conversations.read"

LostRight = Literal["session_ended", "permission_lost"]


class RightsReader(OrganisationReader, AccountReader, Protocol):
    """Queries on a user's permissions and sessions."""

    def lasts(self, session_id: str) -> bool:
        """Return whether the session or access token with this id is still valid."""


class Viewer(Struct, frozen=True):
    """The agent who opened a stream, as of the opening.

    Args:
        user: storage key.
        generation: the generation of the password; a later one ends all sessions of the user.
        session: id of the browser's session or of the access token.
    """

    user: int
    id: str
    name: str
    generation: int
    project: Project
    session: str | None = None


def find_lost_right(reader: RightsReader, viewer: Viewer) -> LostRight | None:
    """Return the right that the viewer has lost according to the store, None if none."""
    user = reader.user(viewer.id)
    if user is None or user.generation != viewer.generation:
        return "session_ended"
    try:
        _, role = project_of(reader, user, viewer.project.id)
    except NotFound:
        return "permission_lost"
    return None if PERMISSION in role.permissions else "permission_lost"
