"""A workflow as it runs in one conversation: where it stands, and what it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

Ending = Literal["completed", "handed_off"]
Stop = Literal["step_limit", "attributes_full", "assignee_gone"]
"""The reason for which a workflow could not go on."""


class Run(Struct, frozen=True):
    """A running workflow at rest: it waits for the contact (`step`) or for a time (`due_at`).

    Args:
        version: storage key of the version that it keeps to its end.
        flow, action: positions of the action that waits.
        answers: the contact's answers so far, by action id.
        steps: the number of actions that were carried out.
        step: the pending step as the contact's side sees it (contract 2.5).
        due_at: when it goes on by itself, in milliseconds.
    """

    workflow_id: str
    version: int
    flow: int = 0
    action: int = 0
    answers: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 0
    step: Mapping[str, Any] | None = None
    due_at: int | None = None

    @property
    def action_id(self) -> int | None:
        """The id of the action that waits for the contact."""
        return None if self.step is None else self.step["actionId"]

    @property
    def takes_text(self) -> bool:
        """True if a message of the contact answers the pending step."""
        return self.step is not None and bool(self.step["action"].get("allowText"))
