"""A store whose writes tell agents that something their project is set up with has changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from deskwire.engine.accounts.people import Project
from deskwire.engine.core.clock import Clock
from deskwire.engine.core.store import InlineJob, Store
from deskwire.engine.events.internal import Setting, settings_changed, tell_agents
from deskwire.engine.events.ports import EventTransaction

T = TypeVar("T")
R = TypeVar("R")
W = TypeVar("W", bound=EventTransaction)


class Telling(Struct, Generic[R, W], frozen=True):
    """A store each of whose writes has an event for the agents of these projects, in the same commit.

    There is one also if nothing turned out to be another: who hears of it looks for itself.

    Args:
        projects: returns the projects that it is about.
        object_id: the id of what is changed; None for what is new, or for several things.
    """

    store: Store[R, W]
    clock: Clock
    what: Setting
    projects: Callable[[W], Sequence[Project]]
    object_id: str | None

    async def write(self, job: Callable[[W], T]) -> T:
        """See `Store.write`."""
        return await self.store.write(self._told(job))

    def submit(self, job: Callable[[W], T], ended: Callable[[T | Exception], None]) -> None:
        """See `Store.submit`."""
        self.store.submit(self._told(job), ended)

    async def read(self, query: Callable[[R], T]) -> T:
        """See `Store.read`."""
        return await self.store.read(query)

    def _told(self, job: Callable[[W], T]) -> Callable[[W], T]:
        at = self.clock()

        def told(tx: W) -> T:
            done = job(tx)
            for project in self.projects(tx):
                tell_agents(tx, project, settings_changed(self.what, self.object_id), None, at)
            return done

        return InlineJob(told) if isinstance(job, InlineJob) else told
