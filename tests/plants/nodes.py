"""Bugs of an installation with several nodes, each a likely mistake that the simulation has to find."""

from __future__ import annotations

from typing import Any

import trio

from deskwire.engine.cluster.barrier import Barrier
from deskwire.engine.core.errors import StaleState
from deskwire.engine.core.values import replace
from deskwire.engine.events.follower import Follower
from deskwire.storage.tables.conversations.conversations import ConversationWrites
from tests.plants.registry import Patch, plant
from tests.simulation.nodes.shared import Database
from tests.simulation.nodes.way import Way


@plant("nodes")
def write_whatever_the_revision(patch: Patch) -> None:
    """A write locks the row, but does not compare its revision."""
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


@plant("nodes")
def take_a_lost_answer_for_success(patch: Patch) -> None:
    """A COMMIT without an answer is treated as successful."""

    async def stored(self: Way, number: int) -> bool:
        return True

    patch.setattr(Way, "_stored", stored)


@plant("nodes")
def go_by_hints_alone(patch: Patch) -> None:
    """Followers never poll the heads, although hints get lost."""

    async def never(self: Follower) -> None:
        await trio.sleep_forever()

    patch.setattr(Follower, "_keep_polling", never)


@plant("nodes")
def show_own_commits_out_of_line(patch: Patch) -> None:
    """A node's own commit is added to memory before an earlier commit of another node."""

    def commit_nowait(self: Any, commit: Any) -> None:
        self._log.erase(commit.erased)
        for _, after in commit.advances:
            if self._log.is_open(after.project):
                self._log.apply(after.project, after.events, commit.events)

    patch.setattr(Follower, "commit_nowait", commit_nowait)


@plant("nodes")
def give_positions_before_the_lock(patch: Patch) -> None:
    """Positions are assigned before the head is locked, so a larger one can become visible before a smaller one."""
    commit = Database.commit

    def reordered(self: Any, session: Any, jobs: Any, lane: str, number: int) -> Any:
        made = commit(self, session, jobs, lane, number)
        first = [event.position for event in made.events][:1]
        if first and self.dice.random() < 0.1:
            self.hide(first[0])
            trio.lowlevel.spawn_system_task(_show, self, first[0])
        return made

    patch.setattr(Database, "commit", reordered)


@plant("processes")
def barrier_that_does_not_wait(patch: Patch) -> None:
    """A change is answered before all nodes know about it, although it has to wait for them."""

    async def reached(self: Barrier, epoch: int) -> None:
        await trio.lowlevel.checkpoint()

    patch.setattr(Barrier, "reached", reached)


async def _show(database: Database, position: int) -> None:
    await trio.sleep(0.5)  # virtual time: the mock clock jumps
    database.show(position)
