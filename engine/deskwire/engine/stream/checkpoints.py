"""The checkpoints of consumers: confirmed positions, saved together so that pongs cost few commits."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import structlog
import trio

from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineJob, Store
from deskwire.engine.stream.channel import Channel
from deskwire.engine.stream.lease import ChannelLease
from deskwire.engine.stream.ports import StreamReader, StreamTransaction

log: Final = structlog.get_logger(__name__)

_FORGET_S: Final = 7 * 86_400
"""How long the last consumer of a conversation's or contact's channel is remembered, as long as events are."""
_FORGET_EVERY_S: Final = 3600.0
_LAST_SAVE_S: Final = 5.0
_BRIEF: Final = 32
"""Rows that are written without a thread (`InlineJob`)."""


class Checkpoints:
    """The positions that leases have confirmed, on their way to the store.

    Args:
        save_s: pause between two saves; after a crash each consumer gets the events of that time again.
        shared: whether other nodes may change the rows; then positions are all that is saved here.
    """

    def __init__(
        self,
        store: Store[StreamReader, StreamTransaction],
        clock: Clock,
        save_s: float,
        *,
        shared: bool = False,
    ) -> None:
        self._store = store
        self._clock = clock
        self._save_s = save_s
        self._shared = shared
        self._dirty: dict[Channel, ChannelLease] = {}
        self._wakeup = trio.Event()

    def touch(self, lease: ChannelLease) -> None:
        """Have the lease saved soon."""
        self._dirty[lease.channel] = lease
        self._wakeup.set()

    def drop(self, lease: ChannelLease) -> None:
        """Forget to save the lease, as a takeover has just stored it."""
        self._dirty.pop(lease.channel, None)

    def unsaved(self, lease: ChannelLease) -> bool:
        """Return whether the lease is still to be saved."""
        return lease.channel in self._dirty

    async def run(
        self, in_use: Callable[[], Collection[tuple[int, str]]], *, task_status: trio.TaskStatus[None]
    ) -> None:
        """Save until cancelled, then once more; forget channels that are not `in_use` and long unused.

        Cancellation: the last save may take 5 s.
        """
        forget_at = trio.current_time()
        task_status.started()
        try:
            while True:
                with trio.move_on_at(forget_at):
                    await self._wakeup.wait()
                await self._save()
                if trio.current_time() >= forget_at:
                    forget_at = trio.current_time() + _FORGET_EVERY_S
                    await self._forget(in_use())
                await trio.sleep(self._save_s)
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + _LAST_SAVE_S):
                await self._save()

    async def _save(self) -> None:
        dirty, self._dirty, self._wakeup = self._dirty, {}, trio.Event()
        if not dirty:
            return
        at = self._clock()
        rows = [
            (channel.project, channel.name, lease.generation, lease.confirmed, tuple(lease.superseded), at)
            for channel, lease in dirty.items()
        ]

        def job(tx: StreamTransaction) -> None:
            for row in rows:
                tx.confirm_position(*row)

        def shared_job(tx: StreamTransaction) -> None:
            there = [tx.event_id_at(project, position) for project, _, _, position, _, _ in rows]
            for (project, name, generation, position, _, _), found, lease in zip(
                rows, there, dirty.values(), strict=True
            ):
                event = "" if lease.replaced else found
                tx.save_position(project, name, generation, position, event, at)

        chosen = shared_job if self._shared else job
        try:
            await self._store.write(InlineJob(chosen) if len(rows) <= _BRIEF else chosen)
        except Unavailable as error:
            log.warning("stream.positions_not_saved", error=error.detail, channels=len(rows))
            for lease in dirty.values():
                self.touch(lease)

    async def _forget(self, kept: Collection[tuple[int, str]]) -> None:
        """Remove the rows of conversations' and contacts' channels that were given up long ago."""
        before = self._clock() - _FORGET_S * 1000
        try:
            await self._store.write(lambda tx: tx.forget_consumers(before, kept))
        except Unavailable as error:
            log.warning("stream.consumers_not_forgotten", error=error.detail)
