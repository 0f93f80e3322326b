"""The first steps of a new project: which of them are done, and whether its members see the list."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Literal, Protocol

from msgspec import Struct, to_builtins

from deskwire.engine.accounts.people import Project

Step = Literal["chat", "colleague", "history", "webhook", "secondFactor"]

STEPS: Final[Mapping[Step, str | None]] = {
    "chat": "projects.manage",
    "colleague": "members.manage",
    "history": "projects.manage",
    "webhook": "webhooks.manage",
    "secondFactor": None,
}
"""The steps in order, with the permission to do them; None if every user can."""


class SetupState(Struct, frozen=True, rename="camel"):
    """The steps that are done, and whether the list is hidden.

    Args:
        hidden: the list is hidden from all members of the project.
        chat: a customer has opened the chat of a channel.
        colleague: the organisation has a second member, or an open invitation.
        history: conversations were imported.
        webhook: an endpoint or a stream consumer gets the events.
        second_factor: the user has a second factor.
    """

    hidden: bool
    chat: bool
    colleague: bool
    history: bool
    webhook: bool
    second_factor: bool


class SetupReader(Protocol):
    """The query of the first steps."""

    def setup_state(self, project: int, organisation: int, user: int) -> SetupState:
        """Return the steps that are done. All arguments are storage keys."""


class SetupTransaction(SetupReader, Protocol):
    """Changes of the first steps."""

    def hide_setup(self, project: Project, *, hidden: bool) -> None:
        """Hide the list from all members of a project, or show it again. A change is recorded in the audit trail."""


def setup_view(state: SetupState, permissions: Collection[str]) -> dict[str, object]:
    """Return the list as the API shows it, with the steps that these permissions allow."""
    done = to_builtins(state)
    steps = [
        {"name": name, "done": done[name]}
        for name, permission in STEPS.items()
        if permission is None or permission in permissions
    ]
    return {"hidden": state.hidden, "steps": steps}
