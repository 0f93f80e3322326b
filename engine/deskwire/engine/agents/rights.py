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

LostRight = Literal["session_ended", "permission_lost", "second_factor_required"]


class RightsReader(OrganisationReader, AccountReader, Protocol):
    """Queries on a user's permissions and sessions."""

    def lasts(self, session_id: str) -> bool:
        """Return whether the session or access token with this id is still valid."""

    def lacks_factor(self, organisation: int, user: int) -> bool:
        """Return whether an organisation requires a second factor that a user lacks. Both are storage keys."""


class Viewer(Struct, frozen=True):
    """The agent who opened a stream, as of the opening.

    Args:
        user: storage key.
        generation: the generation of the password; a later one ends all sessions of the user.
        session: id of the browser's session or of the access token.
        vouched: whether an identity provider vouches for a second factor of the session's user.
    """

    user: int
    id: str
    name: str
    generation: int
    project: Project
    session: str | None = None
    vouched: bool = False


def find_lost_right(reader: RightsReader, viewer: Viewer) -> LostRight | None:
    """Return the right that the viewer has lost according to the store, None if none."""
    user = reader.user(viewer.id)
    if user is None or user.generation != viewer.generation:
        return "session_ended"
    try:
        project, role = project_of(reader, user, viewer.project.id)
    except NotFound:
        return "permission_lost"
    if PERMISSION not in role.permissions:
        return "permission_lost"
    if not viewer.vouched and reader.lacks_factor(project.organisation, user.rowid):
        return "second_factor_required"
    return None
