"""Pushes of the audit trail: the records of an organisation, posted to a webhook of its own (ADR 45).

A record is noted as unpushed in the commit that stores it, or adds to its count, and that note is removed when the receiver
has answered 2xx. So nothing is lost to a crash, a restart or a receiver that is away, and a record whose count has grown is
pushed again, under the same id. One node pushes at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

import orjson
import structlog
import trio
from msgspec import Struct

from deskwire.engine.audit.trail import AuditRecord, record_view
from deskwire.engine.core.clock import Clock, iso, iso_or_none
from deskwire.engine.core.encryption import DecryptionFailed, Encryption
from deskwire.engine.core.errors import NotFound, Unavailable
from deskwire.engine.core.store import Store
from deskwire.engine.core.values import replace
from deskwire.engine.webhooks.delivery import Attempt
from deskwire.engine.webhooks.http.client import Client
from deskwire.engine.webhooks.retry.schedule import pause_asked_ms
from deskwire.engine.webhooks.signature import SigningSecrets

log: Final = structlog.get_logger(__name__)

EVENT: Final = "audit.records"
BATCH_SIZE: Final = 100
"""Records of one request."""
SECRET_OVERLAP_MS: Final = 24 * 3_600_000
"""The time for which a former secret signs beside the new one."""
_LOOK_S: Final = 1.0
"""Time between two looks for records to push; a record that is counted on is pushed once in that time."""
_AT_ONCE: Final = 32
"""Pushes under way at once; those of receivers that do not answer take a few seconds each."""
_DELAYS_S: Final = (1, 2, 5, 10, 30, 60, 120, 300)
"""Times after failed attempts in a row; the last one holds from there on, without an end."""


class AuditPush(Struct, frozen=True):
    """The push of an organisation. Times are in milliseconds.

    Args:
        organisation: storage key.
        old_secret, old_secret_until: the former secret, and until when it signs, too.
        attempts: failed ones in a row.
        due_at: when the next attempt may be made; None for at once.
        failing_since: None while attempts succeed.
        last_at, last_status, last_error: the last attempt.
        missed: the number of records that left the trail before they could be pushed.
        rowid: its storage key; 0 for one that is not stored yet.
    """

    id: str
    organisation: int
    url: str
    sealed_secret: bytes
    secret_tail: str
    created_at: int
    updated_at: int
    old_secret: bytes | None = None
    old_secret_until: int | None = None
    attempts: int = 0
    due_at: int | None = None
    failing_since: int | None = None
    last_at: int | None = None
    last_status: int | None = None
    last_error: str | None = None
    missed: int = 0
    rowid: int = 0


class PushHealth(Struct, frozen=True):
    """The state of all pushes.

    Args:
        pushes: number of pushes.
        failing: number of those whose last attempt failed.
        failing_since: time since which the oldest of these fails (ms), None if none does.
        unpushed: records that wait, counted up to a bound.
        missed: records that left the trail before they could be pushed.
    """

    pushes: int
    failing: int
    failing_since: int | None
    unpushed: int
    missed: int


class Unpushed(Struct, frozen=True):
    """A record that is to be pushed; `note` is the storage key of what says so."""

    note: int
    record: AuditRecord


class PushReader(Protocol):
    """Queries on pushes."""

    def audit_push(self, organisation: int) -> AuditPush | None:
        """Return the push of an organisation (storage key)."""

    def audit_push_with(self, push: int) -> AuditPush | None:
        """Return the push with this storage key."""

    def due_audit_pushes(self, now: int) -> Sequence[int]:
        """Return the storage keys of those that have something to push and may do so at `now` (ms)."""

    def unpushed(self, push: int, limit: int) -> Sequence[Unpushed]:
        """Return the oldest records to push."""

    def count_unpushed(self, push: int) -> int:
        """Return how many records there are to push."""

    def audit_push_health(self, bound: int) -> PushHealth:
        """Return the state of all pushes; records that wait are counted up to `bound`."""


class PushTransaction(PushReader, Protocol):
    """Changes of pushes; their making, URL, secret and end record themselves."""

    def insert_audit_push(self, push: AuditPush) -> AuditPush:
        """Store a new push; it has what is recorded from here on, with its own making."""

    def save_audit_push(self, push: AuditPush) -> None:
        """Store a changed URL or secret."""

    def delete_audit_push(self, push: AuditPush) -> None:
        """Remove a push with what it still had to push."""

    def note_push(self, push: int, attempt: Attempt, attempts: int, due_at: int | None) -> None:
        """Store the outcome of an attempt, and when the next one may be made."""

    def delete_push_notes(self, notes: Sequence[int]) -> None:
        """Remove the notes of records that have arrived. One that was counted on meanwhile has another note."""


class _Content(Struct, frozen=True):
    type: str
    body: bytes


class _Batch(Struct, frozen=True):
    """Records as `Client.post` takes a delivery."""

    id: str
    event: _Content
    attempts: int
    previous: int | None = None


class AuditPusher:
    """The task that pushes what is due.

    Args:
        client: makes a client for a URL.
    """

    def __init__(
        self,
        store: Store[PushReader, PushTransaction],
        clock: Clock,
        sealing: Encryption,
        client: Callable[[str], Client],
    ) -> None:
        self._store = store
        self._clock = clock
        self._sealing = sealing
        self._client = client
        self._under_way: set[int] = set()

    async def run(self) -> None:
        """Push, until cancelled."""
        self._under_way.clear()
        async with trio.open_nursery() as nursery:
            while True:
                try:
                    now = self._clock()
                    due = await self._store.read(lambda reader, now=now: reader.due_audit_pushes(now))  # type: ignore[misc]
                except Unavailable as error:
                    log.warning("audit.pushes_not_read", reason=error.reason)
                    due = []
                for push in due:
                    if push not in self._under_way and len(self._under_way) < _AT_ONCE:
                        self._under_way.add(push)
                        nursery.start_soon(self._push_all, push)
                await trio.sleep(_LOOK_S)

    async def _push_all(self, rowid: int) -> None:
        """Push batch after batch, until nothing is left, an attempt fails, or the records are to go to another URL."""
        try:
            push = await self._store.read(lambda reader: reader.audit_push_with(rowid))
            if push is None:
                return
            url, client = push.url, self._client(push.url)
            try:
                while push is not None and push.url == url and await self._push_some(push, client):
                    push = await self._store.read(lambda reader: reader.audit_push_with(rowid))
            finally:
                await client.aclose()
        except Unavailable as error:
            log.warning("audit.push_delayed", push=rowid, reason=error.reason)
        finally:
            self._under_way.discard(rowid)

    async def _push_some(self, push: AuditPush, client: Client) -> bool:
        """Make an attempt at the oldest records; return whether there may be more."""
        found = await self._store.read(lambda reader: reader.unpushed(push.rowid, BATCH_SIZE))
        if not found:
            return False
        attempt = await self._attempt(push, client, [each.record for each in found])
        if attempt.error is None:
            notes = [each.note for each in found]

            def arrived(tx: PushTransaction) -> None:
                tx.delete_push_notes(notes)
                tx.note_push(push.rowid, attempt, 0, None)

            await self._store.write(arrived)
            return len(found) == BATCH_SIZE
        failed = push.attempts + 1
        asked_ms = 0 if attempt.wait_ms is None else pause_asked_ms(attempt)
        pause_ms = max(int(_DELAYS_S[min(failed, len(_DELAYS_S)) - 1] * 1000), asked_ms)
        if push.failing_since is None:
            log.warning("audit.push_failed", push=push.id, error=attempt.error)
        due_at = self._clock() + pause_ms

        def note_failure(tx: PushTransaction) -> None:
            now = tx.audit_push_with(push.rowid)
            # A failure of the former URL delays nothing at the new one.
            if now is not None and now.url == push.url:
                tx.note_push(push.rowid, attempt, failed, due_at)

        await self._store.write(note_failure)
        return False

    async def _attempt(self, push: AuditPush, client: Client, records: Sequence[AuditRecord]) -> Attempt:
        body = orjson.dumps({"pushId": push.id, "records": [record_view(each) for each in records]})
        try:
            secrets = self._secrets(push).at(self._clock())
        except DecryptionFailed:
            return Attempt(
                push.attempts + 1,
                self._clock(),
                0,
                None,
                "the signing secret does not open under this installation's secret; rotate it",
                b"",
            )
        return await client.post(_Batch(records[0].id, _Content(EVENT, body), push.attempts), secrets)

    def _secrets(self, push: AuditPush) -> SigningSecrets:
        old = None if push.old_secret is None else self._sealing.open(push.old_secret)
        return SigningSecrets(self._sealing.open(push.sealed_secret), old, push.old_secret_until)


def found_push(reader: PushReader, organisation: int) -> AuditPush:
    """Return the push of an organisation (storage key). Raises NotFound (`push_not_found`)."""
    push = reader.audit_push(organisation)
    if push is None:
        raise NotFound("The audit trail of this organisation is not pushed.", code="push_not_found")
    return push


def with_secret(push: AuditPush, sealed: bytes, tail: str, at: int) -> AuditPush:
    """Return the push with a new secret; the present one signs beside it for 24 hours."""
    return replace(
        push,
        sealed_secret=sealed,
        secret_tail=tail,
        old_secret=push.sealed_secret,
        old_secret_until=at + SECRET_OVERLAP_MS,
        updated_at=at,
    )


def push_view(push: AuditPush, pending: int, secret: str | None = None) -> dict[str, Any]:
    """Return the push object; the secret is masked unless given, which it is once, when it is made.

    Args:
        pending: the number of records that wait.
    """
    return {
        "id": push.id,
        "url": push.url,
        "secret": secret or f"whsec_…{push.secret_tail}",
        "oldSecretUntil": iso_or_none(push.old_secret_until),
        "createdAt": iso(push.created_at),
        "updatedAt": iso(push.updated_at),
        "pending": pending,
        "missed": push.missed,
        "failingSince": iso_or_none(push.failing_since),
        "nextAttemptAt": iso_or_none(push.due_at),
        "lastAttempt": None
        if push.last_at is None
        else {"at": iso(push.last_at), "status": push.last_status, "error": push.last_error},
    }
