"""Bugs to plant in an installation with several nodes: each is one that somebody might make, and the simulation has to see it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import pytest
import trio

from deskwire.engine.core.errors import StaleState
from deskwire.engine.core.values import replace
from deskwire.engine.events.follower import Follower
from deskwire.engine.idempotency.once import Answers
from deskwire.storage.tables.conversations.conversations import ConversationWrites
from deskwire.storage.tables.webhooks.deliveries import DeliveryReads
from tests.simulation.nodes.shared import Database
from tests.simulation.nodes.way import Way

Patch = pytest.MonkeyPatch


def _write_whatever_the_revision(patch: Patch) -> None:
    """The row is locked, and its revision is not compared."""
    claim = ConversationWrites.claim

    def claimed(self: Any, state: Any) -> Any:
        try:
            return claim(self, state)
        except StaleState:
            row = self.conn.execute(
                "SELECT revision, sequence, updated_at FROM conversations WHERE rowid = ? AND id = ?",
                (state.rowid, state.id),
            ).fetchone()
            if row is None:
                raise
            self._claims.clear()
            return claim(self, replace(state, revision=row[0], sequence=row[1], updated_at=row[2]))

    patch.setattr(ConversationWrites, "claim", claimed)


def _take_a_lost_answer_for_success(patch: Patch) -> None:
    """A COMMIT whose answer did not come is taken for one that was carried out."""

    async def stored(self: Way, number: int) -> bool:
        return True

    patch.setattr(Way, "_stored", stored)


def _look_up_a_key_before_the_commit_alone(patch: Patch) -> None:
    """Two nodes that get the same key at once both carry it out."""
    patch.setattr(Answers, "refuse", lambda *_: None)


def _go_by_hints_alone(patch: Patch) -> None:
    """Nobody looks at the heads, though hints get lost."""

    async def never(self: Follower) -> None:
        await trio.sleep_forever()

    patch.setattr(Follower, "_keep_looking", never)


def _show_own_commits_out_of_line(patch: Patch) -> None:
    """An own commit goes into memory though another node's before it is not there yet."""

    def commit_nowait(self: Any, commit: Any) -> None:
        self._log.erase(commit.erased)
        for _, after in commit.advances:
            if self._log.is_open(after.project):
                self._log.take_in(after.project, after.events, commit.events)

    patch.setattr(Follower, "commit_nowait", commit_nowait)


def _give_positions_before_the_lock(patch: Patch) -> None:
    """Positions are given before the head is locked, so that a larger one can be visible before a smaller one is."""
    commit = Database.commit

    def reordered(self: Any, session: Any, jobs: Any, lane: str, number: int) -> Any:
        made = commit(self, session, jobs, lane, number)
        first = [event.position for event in made.events][:1]
        if first and self.dice.random() < 0.1:
            self.hide(first[0])
            trio.lowlevel.spawn_system_task(_show, self, first[0])
        return made

    patch.setattr(Database, "commit", reordered)


def _forget_what_is_pending_at_a_restart(patch: Patch) -> None:
    """Who serves an endpoint does not read the rows that another node, or an earlier process, has left."""
    patch.setattr(DeliveryReads, "pending_deliveries", lambda *_, **__: [])


async def _show(database: Database, position: int) -> None:
    await trio.sleep(0.5)  # virtual time: the mock clock jumps
    database.show(position)


PLANTS: Final[Mapping[str, Callable[[Patch], None]]] = {
    bug.__name__.strip("_"): bug
    for bug in (
        _write_whatever_the_revision,
        _take_a_lost_answer_for_success,
        _look_up_a_key_before_the_commit_alone,
        _go_by_hints_alone,
        _show_own_commits_out_of_line,
        _give_positions_before_the_lock,
        _forget_what_is_pending_at_a_restart,
    )
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """The service with this bug."""
    with pytest.MonkeyPatch.context() as patch:
        PLANTS[name](patch)
        yield
