"""The changes of drafts and held messages that a commit publishes to their author's pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

HeldOutcome = Literal["sent", "taken_back", "refused"]


class DraftChanged(Struct, frozen=True):
    """A draft has a new version or was removed.

    Args:
        author, project: storage keys.
        draft: a `Draft`; None if it was removed.
    """

    author: int
    project: int
    conversation_id: str
    internal: bool
    draft: Any


class MessageHeld(Struct, frozen=True):
    """A message was held. `held` is a `HeldMessage`."""

    author: int
    project: int
    conversation_id: str
    held: Any


class HeldEnded(Struct, frozen=True):
    """A held message was sent, taken back or refused. `held` is the `HeldMessage` if it was refused, else None."""

    author: int
    project: int
    conversation_id: str
    message_id: str
    outcome: HeldOutcome
    held: Any


WritingChange = DraftChanged | MessageHeld | HeldEnded


class WritingCommit(Protocol):
    """The changes of drafts and held messages in a commit."""

    @property
    def writing(self) -> Sequence[WritingChange]:
        """The changes, in order."""
