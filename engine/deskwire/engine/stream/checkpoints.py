"""Checkpoints of consumers: confirmed positions, saved in batches so that pongs cost few commits."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

import structlog
import trio

from deskwire.engine.core.clock import Clock
from deskwire.engine.core.errors import Unavailable
from deskwire.engine.core.store import InlineJob, Store
from deskwire.engine.stream.channel import StreamChannel
from deskwire.engine.stream.lease import ChannelLease
from deskwire.engine.stream.ports import StreamReader, StreamTransaction

log: Final = structlog.get_logger(__name__)

# Time for which the last consumer of a conversation's or contact's channel is stored: as long as events are.
_RETENTION_S: Final = 7 * 86_400
_CLEANUP_INTERVAL_S: Final = 3600.0
_FINAL_SAVE_TIMEOUT_S: Final = 5.0
_BRIEF_ROWS_MAX: Final = 32  # maximum rows in a job that runs without a thread (`InlineJob`)


class Checkpoints:
    """The confirmed positions of leases that are not saved yet.

    Args:
        save_s: pause between two saves; after a crash each consumer receives the events of that time again.
        shared: True if other nodes may change the rows; then only positions are saved here.
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
        self._dirty: dict[StreamChannel, ChannelLease] = {}
        self._wakeup = trio.Event()

    def touch(self, lease: ChannelLease) -> None:
        """Schedule the lease to be saved."""
        self._dirty[lease.channel] = lease
        self._wakeup.set()

    def drop(self, lease: ChannelLease) -> None:
        """Cancel the save of the lease, because a takeover has just stored it."""
        self._dirty.pop(lease.channel, None)

    def unsaved(self, lease: ChannelLease) -> bool:
        """Return whether the lease is still to be saved."""
        return lease.channel in self._dirty

    async def run(
        self, in_use: Callable[[], Collection[tuple[int, str]]], *, task_status: trio.TaskStatus[None]
    ) -> None:
        """Save until cancelled, with a final save, and delete rows of channels that have long been unused.

        Cancellation: the final save may take 5 s.

        Args:
            in_use: returns project and name of the channels whose rows must stay.
        """
        forget_at = trio.current_time()
        task_status.started()
        try:
            while True:
                with trio.move_on_at(forget_at):
                    await self._wakeup.wait()
                await self._save()
                if trio.current_time() >= forget_at:
                    forget_at = trio.current_time() + _CLEANUP_INTERVAL_S
                    await self._delete_unused(in_use())
                await trio.sleep(self._save_s)
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + _FINAL_SAVE_TIMEOUT_S):
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
            await self._store.write(InlineJob(chosen) if len(rows) <= _BRIEF_ROWS_MAX else chosen)
        except Unavailable as error:
            log.warning("stream.positions_not_saved", error=error.detail, channels=len(rows))
            for lease in dirty.values():
                self.touch(lease)

    async def _delete_unused(self, kept: Collection[tuple[int, str]]) -> None:
        """Delete the rows of conversations' and contacts' channels that have long been unused."""
        before = self._clock() - _RETENTION_S * 1000
        try:
            await self._store.write(lambda tx: tx.forget_consumers(before, kept))
        except Unavailable as error:
            log.warning("stream.consumers_not_forgotten", error=error.detail)
