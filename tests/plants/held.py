"""Bugs of held messages."""

from __future__ import annotations

import time
from typing import Any

from deskwire.engine.conversations.held.held import HeldMessage
from deskwire.engine.conversations.held.holding import take_back
from deskwire.engine.conversations.held.sending import Sent
from deskwire.http.resources.conversations import held_messages
from deskwire.storage.tables.conversations.held import HeldReads, HeldWrites
from tests.plants.registry import Patch, plant


@plant("crash", "model")
def send_a_message_that_was_taken_back(patch: Patch) -> None:
    """Taking a message back puts its words into a draft, and leaves it held."""

    def leaving(tx: Any, *values: Any) -> Any:
        with patch.context() as inner:
            inner.setattr(HeldWrites, "delete_held", lambda *_: None)
            return take_back(tx, *values)

    patch.setattr(held_messages, "take_back", leaving)  # where the route has it


@plant("crash")
def forget_held_messages_at_a_restart(patch: Patch) -> None:
    """The timer sends only messages that were held since its process began."""
    due, began_ms = HeldReads.due_held, round(time.time() * 1000)

    def since_the_start(self: HeldReads, until: int, limit: int) -> list[HeldMessage]:
        return [each for each in due(self, until, limit) if each.created_at >= began_ms]

    patch.setattr(HeldReads, "due_held", since_the_start)


@plant("model")
def keep_a_message_held_that_was_sent(patch: Patch) -> None:
    """The commit that sends a held message does not remove it as held."""
    patch.setattr(Sent, "after", lambda *_: None)
