"""Supervised workers: a failure ends one worker alone, and a new one takes its place."""

from __future__ import annotations

from contextvars import Context
from typing import Any, Final, Generic, TypeVar

import structlog
import trio

from deskwire.engine.core.encryption import DecryptionFailed
from deskwire.engine.webhooks.recorder import Superseded
from deskwire.engine.webhooks.sender import Sender

log: Final = structlog.get_logger(__name__)

W = TypeVar("W", bound=Sender)

_RESTART_PAUSE_S: Final = 5.0
"""Pause before a worker that failed is replaced."""


class Supervised(Generic[W]):
    """A worker in a task of its own, replaced after a failure by a new one with an empty queue.

    Attributes:
        worker: the present one.
    """

    def __init__(self, worker: W) -> None:
        self.worker = worker
        self._scope = trio.CancelScope()
        self._ended = trio.Event()

    def start(self, nursery: trio.Nursery, previous: Supervised[Any] | None = None) -> None:
        """Run the worker in a nursery, once `previous` has ended."""
        Context().run(nursery.start_soon, self._run, previous)

    async def ended(self) -> None:
        """Return when the worker has ended, with all that it was doing."""
        await self._ended.wait()

    def cancel(self) -> None:
        """End the worker; see its `run` for what that leaves."""
        self._scope.cancel()

    async def _run(self, previous: Supervised[Any] | None) -> None:
        try:
            if previous is not None:
                await previous.ended()
            with self._scope:
                while await self._run_worker():
                    await trio.sleep(_RESTART_PAUSE_S)
                    self.worker = self.worker.renewed()
        finally:
            self._ended.set()

    async def _run_worker(self) -> bool:
        """Run the present worker; return when it has failed, with the reason in the log, whether another should be run."""
        endpoint, again = self.worker.endpoint.id, True
        try:
            await self.worker.run()
        except* DecryptionFailed as group:
            log.error("delivery.sealed", endpoint=endpoint, error=str(group.exceptions[0]))
        except* Superseded:
            log.warning("delivery.superseded", endpoint=endpoint)
            again = False
        except* Exception:  # the task's top: a bug in one worker must not stop the others
            log.exception("delivery.worker_failed", endpoint=endpoint)
        return again
