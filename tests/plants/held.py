"""Bugs of held messages."""

from __future__ import annotations

from typing import Any

import pytest

from deskwire.engine.conversations import held_messages as engine_held
from deskwire.engine.conversations.drafts import write_draft
from deskwire.engine.conversations.held_messages import HeldMessage, take_back
from deskwire.engine.conversations.held_sending import HeldSender, HeldSent
from deskwire.http.resources.conversations import held_messages
from deskwire.storage.tables.conversations.held_messages import HeldReads, HeldWrites
from tests.plants.registry import Patch, plant


@plant("simulation", "nodes", "crash", "model")
def send_a_message_that_was_taken_back(patch: Patch) -> None:
    """Withdrawing a message copies its text to a draft, but leaves the message held."""

    def leaving(tx: Any, *values: Any, **named: Any) -> Any:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(HeldWrites, "delete_held", lambda *_: None)
            return take_back(tx, *values, **named)

    patch.setattr(held_messages, "take_back", leaving)  # the name that the route uses


@plant("simulation", "crash")
def forget_held_messages_at_a_restart(patch: Patch) -> None:
    """The timer sends only messages that were held since its process began."""
    begin, due, began_ms = HeldSender.__init__, HeldReads.due_held, [0]

    def starting(self: HeldSender, store: Any, clock: Any, actors: Any) -> None:
        began_ms[0] = clock()
        begin(self, store, clock, actors)

    def since_the_start(self: HeldReads, until: int, limit: int) -> list[HeldMessage]:
        return [each for each in due(self, until, limit) if each.created_at >= began_ms[0]]

    def next_since_the_start(self: HeldReads) -> int | None:
        return min((each.send_at for each in since_the_start(self, 1 << 62, 1_000)), default=None)

    patch.setattr(HeldSender, "__init__", starting)
    patch.setattr(HeldReads, "due_held", since_the_start)
    patch.setattr(HeldReads, "next_held", next_since_the_start)


@plant("simulation")
def send_a_held_message_before_its_time(patch: Patch) -> None:
    """The timer treats a hold as begun ten seconds earlier."""
    due, following = HeldReads.due_held, HeldReads.next_held

    def due_early(self: HeldReads, until: int, limit: int) -> Any:
        return due(self, until + 10_000, limit)

    def next_early(self: HeldReads) -> int | None:
        at = following(self)
        return None if at is None else at - 10_000

    patch.setattr(HeldReads, "due_held", due_early)
    patch.setattr(HeldReads, "next_held", next_early)


@plant("simulation")
def lose_a_message_that_was_taken_back(patch: Patch) -> None:
    """Every second withdrawn message is lost: its text does not reach the draft."""
    count = [0]

    def losing(tx: Any, place: Any, written: Any, at: int, *, bounded: bool) -> Any:
        count[0] += 1
        if count[0] % 2 == 0:
            tx.conn.execute("SAVEPOINT lost")
            saved = write_draft(tx, place, written, at, bounded=bounded)
            tx.conn.execute("ROLLBACK TO lost")
            return saved
        return write_draft(tx, place, written, at, bounded=bounded)

    patch.setattr(engine_held, "write_draft", losing)


@plant("simulation", "nodes", "model")
def keep_a_message_held_that_was_sent(patch: Patch) -> None:
    """The commit that sends a held message leaves it held."""
    patch.setattr(HeldSent, "after", lambda *_: None)
