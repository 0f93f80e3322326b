"""The changes of drafts and held messages that a commit makes known to the pages of their author."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct

HeldOutcome = Literal["sent", "taken_back", "refused"]


class DraftChanged(Struct, frozen=True):
    """A draft has another version, or is gone. Author and project are storage keys; `draft` is a `Draft`, None if it is gone."""

    author: int
    project: int
    conversation_id: str
    internal: bool
    draft: Any


class MessageHeld(Struct, frozen=True):
    """A message is held. `held` is a `HeldMessage`."""

    author: int
    project: int
    conversation_id: str
    held: Any


class HeldEnded(Struct, frozen=True):
    """A held message is held no longer. `held` is the `HeldMessage` if it was refused and is kept, else None."""

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
