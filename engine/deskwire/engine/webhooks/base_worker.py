"""Base of an endpoint's two workers, and the supervised task that runs one.

`worker.EndpointWorker` sends stored deliveries, `ephemeral.EphemeralWorker` those in memory only. The base
signs, posts and evaluates attempts, and waits for work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import Context
from functools import partial
from typing import Any, Final, Generic, Protocol, Self, TypeVar

import structlog
import trio
from msgspec import Struct

from deskwire.engine.core.encryption import DecryptionFailed
from deskwire.engine.core.tasks.failure import report_failure
from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.context import DeliveryContext
from deskwire.engine.webhooks.delivery import Attempt
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.http.client import Postable, Withheld
from deskwire.engine.webhooks.http.connection import KEEPALIVE_S
from deskwire.engine.webhooks.recorder import Superseded
from deskwire.engine.webhooks.retry.circuit_breaker import CircuitBreaker
from deskwire.engine.webhooks.retry.schedule import AttemptedDelivery, DeliveryEnd, Retry
from deskwire.engine.webhooks.retry.verdict import verdict
from deskwire.engine.webhooks.signature import SigningSecrets

log: Final = structlog.get_logger(__name__)

# Closing connections needs no network, so this limit matters only for bugs.
_CLOSE_TIMEOUT_S: Final = 1.0


class Sendable(Postable, AttemptedDelivery, Protocol):
    """A delivery that can be sent, stored as a row or kept in memory only."""


class _Rendered(Struct, frozen=True):
    """An event in the version of its endpoint."""

    id: str
    type: str
    body: bytes


class _RenderedDelivery(Struct, frozen=True):
    """A delivery with its event in the version of its endpoint."""

    id: str
    event: _Rendered
    attempts: int
    previous: int | None


class BaseWorker(ABC):
    """One endpoint's worker, without its queue.

    A worker runs once. After a failure, a new worker replaces it.

    Args:
        endpoint: the endpoint that it sends to.
        context: dependencies shared by all workers.
        breaker: the endpoint's circuit breaker, shared by its two workers.
    """

    # Log event for an attempt that a bug has ended.
    _failure_event: str

    def __init__(self, endpoint: Endpoint, context: DeliveryContext, breaker: CircuitBreaker) -> None:
        self.endpoint = endpoint
        self.breaker: Final = breaker
        self._context = context
        self._client: Final = context.client(endpoint.url)
        self._signing: SigningSecrets | None = None
        self._wakeup = trio.Event()

    @property
    @abstractmethod
    def held(self) -> int:
        """The number of deliveries in memory."""

    @abstractmethod
    def forget(self, conversations: frozenset[int]) -> None:
        """Stop sending deliveries of erased conversations."""

    @abstractmethod
    async def _serve(self) -> None:
        """Send the queue's deliveries until cancelled."""

    def renewed(self) -> Self:
        """Return a new worker for the same endpoint, with an empty queue."""
        return type(self)(self.endpoint, self._context, self.breaker)

    def change(self, endpoint: Endpoint) -> None:
        """Apply the endpoint's changed fields; its URL must be the same.

        Raises DecryptionFailed if a secret can't be opened; nothing is changed then.
        """
        self._signing = self._context.signing(endpoint)
        self.endpoint = endpoint

    async def run(self) -> None:
        """Deliver until cancelled.

        Raises DecryptionFailed if the endpoint's secret can't be opened. Its stored deliveries stay pending.

        Cancellation: see the subclass. Connections are closed in any case.
        """
        self._signing = self._context.signing(self.endpoint)
        try:
            await self._serve()
        finally:
            with trio.move_on_after(_CLOSE_TIMEOUT_S, shield=True):
                await self._client.aclose()

    async def _attempt(
        self,
        current_delivery: Callable[[], Sendable],
        erased: Callable[[], bool],
        *,
        probe: bool,
        quiet_pause_ms: int | None = None,
    ) -> tuple[Attempt, Retry | DeliveryEnd] | None:
        """Make a delivery's next attempt; return it with the verdict.

        Returns None if the delivery was erased before its first byte was sent.

        Args:
            current_delivery: returns the delivery; a different object after its event was rewritten.
            erased: returns whether the delivery's conversation has been erased.
            probe: whether `CircuitBreaker.begin` made this attempt the probe.
            quiet_pause_ms: see `verdict`.
        """
        cluster, delivery = self._context.cluster, current_delivery()

        def may_send() -> bool:
            return (
                trio.current_time() < cluster.valid_until and not erased() and current_delivery() is delivery
            )

        succeeded_at, attempt = self.breaker.succeeded_at, None
        try:
            while attempt is None:
                while trio.current_time() >= cluster.valid_until:
                    await cluster.until_valid()
                if erased():
                    return None
                delivery = current_delivery()
                attempt = await self._post(delivery, may_send)
        finally:
            if probe:
                self.breaker.probe_over()
        now = self._context.clock()
        if now < attempt.at:  # the clock was set back during the attempt: plan the retry by the new time
            attempt = replace(attempt, at=now - attempt.latency_ms)
        follows = verdict(
            attempt,
            delivery,
            self._context.schedule,
            self.breaker,
            fraction=self._context.rng.random(),
            succeeded_at=succeeded_at,
            probe=probe,
            quiet_pause_ms=quiet_pause_ms,
        )
        return attempt, follows

    async def _post(self, delivery: Sendable, may_send: Callable[[], bool]) -> Attempt | None:
        at, began = self._context.clock(), trio.current_time()
        assert self._signing is not None, "the worker runs"
        try:
            return await self._client.post(self._rendered(delivery), self._signing.at(at), may_send)
        except Withheld:
            return None
        except BaseException as error:  # noqa: BLE001  # a bug in one delivery must not stop the others
            report_failure(error, partial(self._log_failure, delivery))
        latency_ms = round((trio.current_time() - began) * 1000)
        return Attempt(delivery.attempts + 1, at, latency_ms, None, "internal error", b"")

    def _rendered(self, delivery: Sendable) -> Postable:
        """Return the delivery in the version that the endpoint is pinned to."""
        versions, wanted = self._context.versions, self.endpoint.api_version
        if wanted == versions.newest:  # the stored bytes as they are
            return delivery
        event = delivery.event
        body = versions.render(event.body, wanted)
        return _RenderedDelivery(
            delivery.id, _Rendered(event.id, event.type, body), delivery.attempts, delivery.previous
        )

    def _log_failure(self, delivery: Sendable, failure: BaseException) -> None:
        log.error(self._failure_event, endpoint=self.endpoint.id, delivery=delivery.id, exc_info=failure)

    async def _wait(self, due_s: float, *, working: Callable[[], bool]) -> None:
        """Return after a wakeup or after `due_s` seconds; close idle connections.

        Args:
            due_s: infinite if no work is due without a wakeup.
            working: returns whether attempts are running, so that connections are in use.
        """
        with trio.move_on_after(min(due_s, KEEPALIVE_S)) as scope:
            await self._wakeup.wait()
        if scope.cancelled_caught and due_s > KEEPALIVE_S and not working():
            await self._client.aclose()
            with trio.move_on_after(due_s - KEEPALIVE_S):
                await self._wakeup.wait()


W = TypeVar("W", bound=BaseWorker)

# Delay before a failed worker is replaced.
_RESTART_DELAY_S: Final = 5.0


class SupervisedWorker(Generic[W]):
    """Runs a worker in its own task; replaces it after a failure.

    The new worker starts with an empty queue.

    Attributes:
        worker: the current worker.
    """

    def __init__(self, worker: W) -> None:
        self.worker = worker
        self._scope = trio.CancelScope()
        self._ended = trio.Event()

    def start(self, nursery: trio.Nursery, previous: SupervisedWorker[Any] | None = None) -> None:
        """Run the worker in a nursery, after `previous` has ended."""
        Context().run(nursery.start_soon, self._run, previous)

    async def ended(self) -> None:
        """Return when the worker and all its attempts have ended."""
        await self._ended.wait()

    def cancel(self) -> None:
        """Cancel the worker; see its `run` for the effect."""
        self._scope.cancel()

    async def _run(self, previous: SupervisedWorker[Any] | None) -> None:
        try:
            if previous is not None:
                await previous.ended()
            with self._scope:
                while await self._run_worker():
                    await trio.sleep(_RESTART_DELAY_S)
                    self.worker = self.worker.renewed()
        finally:
            self._ended.set()

    async def _run_worker(self) -> bool:
        """Run the current worker until it fails; return whether to replace it.

        The failure is logged.
        """
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
