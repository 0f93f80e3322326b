"""Pushes of the audit trail: the records of an organisation are posted to its webhook (ADR 45).

The commit that stores a record, or adds to its count, also stores a note that the record is unpushed. The note is deleted when
the receiver has answered 2xx. So no record is lost in a crash or while the receiver is down, and a record whose count has
grown is pushed again with the same id. One node pushes at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import sha256
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
"""Maximum number of records per request."""
SECRET_OVERLAP_MS: Final = 24 * 3_600_000
"""Overlap after a rotation, during which the previous secret signs, too."""
_POLL_INTERVAL_S: Final = 1.0
"""Interval between polls for unpushed records. A record whose count grows is pushed at most once per interval."""
_CONCURRENT_PUSHES_MAX: Final = 32
"""Maximum number of concurrent pushes. A push to a receiver that does not answer takes a few seconds."""
_RETRY_DELAYS_S: Final = (1, 2, 5, 10, 30, 60, 120, 300)
"""Retry delays by number of consecutive failures. The last one repeats without an end."""


class AuditPush(Struct, frozen=True):
    """The push of an organisation. Times are in milliseconds.

    Args:
        organisation: storage key of the organisation.
        old_secret, old_secret_until: the previous secret, and the end of its overlap.
        attempts: number of consecutive failed attempts.
        due_at: earliest time of the next attempt, None for immediately.
        failing_since: time of the first failure in a row, None while attempts succeed.
        last_at, last_status, last_error: time and outcome of the last attempt.
        missed: number of records that retention deleted before they were pushed.
        rowid: storage key, 0 before it is stored.
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
        failing: number of pushes whose last attempt failed.
        failing_since: time (ms) since which a push has been failing, the earliest one. None if no push fails.
        unpushed: number of unpushed records, counted up to a bound.
        missed: number of records that retention deleted before they were pushed.
    """

    pushes: int
    failing: int
    failing_since: int | None
    unpushed: int
    missed: int


class Unpushed(Struct, frozen=True):
    """An unpushed record. `note` is the storage key of its note."""

    note: int
    record: AuditRecord


class PushReader(Protocol):
    """Queries on pushes."""

    def audit_push(self, organisation: int) -> AuditPush | None:
        """Return the push of an organisation (storage key)."""

    def audit_push_with(self, push: int) -> AuditPush | None:
        """Return the push with this storage key."""

    def due_audit_pushes(self, now: int) -> Sequence[int]:
        """Return the storage keys of pushes that have unpushed records and are due at `now` (ms)."""

    def unpushed(self, push: int, limit: int) -> Sequence[Unpushed]:
        """Return the oldest unpushed records of a push."""

    def count_unpushed(self, push: int) -> int:
        """Return the number of unpushed records of a push."""

    def audit_push_health(self, bound: int) -> PushHealth:
        """Return the state of all pushes. Unpushed records are counted up to `bound`."""


class PushTransaction(PushReader, Protocol):
    """Changes of pushes.

    Creation, deletion and changes of URL or secret are recorded in the audit trail.
    """

    def insert_audit_push(self, push: AuditPush) -> AuditPush:
        """Store a new push. It pushes records from its own creation on."""

    def save_audit_push(self, push: AuditPush) -> None:
        """Store a changed URL or secret."""

    def delete_audit_push(self, push: AuditPush) -> None:
        """Delete a push with its notes of unpushed records."""

    def note_push(self, push: int, attempt: Attempt, attempts: int, due_at: int | None) -> None:
        """Store the outcome of an attempt, and the earliest time of the next one."""

    def delete_push_notes(self, notes: Sequence[int]) -> None:
        """Delete the notes of delivered records.

        A record whose count has grown since then has a new note.
        """


class _PushContent(Struct, frozen=True):
    id: str
    type: str
    body: bytes


class _PushBatch(Struct, frozen=True):
    """Records in the form of a delivery for `Client.post`."""

    id: str
    event: _PushContent
    attempts: int
    previous: int | None = None


class AuditPusher:
    """The task that pushes unpushed records.

    Args:
        client: makes an HTTP client for a URL.
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
                    if push not in self._under_way and len(self._under_way) < _CONCURRENT_PUSHES_MAX:
                        self._under_way.add(push)
                        nursery.start_soon(self._push_all, push)
                await trio.sleep(_POLL_INTERVAL_S)

    async def _push_all(self, rowid: int) -> None:
        """Push batch after batch until nothing is left, an attempt fails, or the URL changes."""
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
        """Push the oldest records. Return whether there may be more."""
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
        pause_ms = max(int(_RETRY_DELAYS_S[min(failed, len(_RETRY_DELAYS_S)) - 1] * 1000), asked_ms)
        if push.failing_since is None:
            log.warning("audit.push_failed", push=push.id, error=attempt.error)
        due_at = self._clock() + pause_ms

        def note_failure(tx: PushTransaction) -> None:
            now = tx.audit_push_with(push.rowid)
            # A failure at the previous URL must not delay attempts at the new one.
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
        first = records[0].id
        content = _PushContent(_batch_id(first, body), EVENT, body)
        return await client.post(_PushBatch(first, content, push.attempts), secrets)

    def _secrets(self, push: AuditPush) -> SigningSecrets:
        old = None if push.old_secret is None else self._sealing.open(push.old_secret)
        return SigningSecrets(self._sealing.open(push.sealed_secret), old, push.old_secret_until)


def _batch_id(first: str, body: bytes) -> str:
    """Return the value of `webhook-id`: the same only for the same records.

    The next attempt may carry more records, or a grown count, after the same first record. A receiver that removes
    duplicates by `webhook-id` must not skip them.
    """
    return f"{first}_{sha256(body).hexdigest()[:16]}"


def found_push(reader: PushReader, organisation: int) -> AuditPush:
    """Return the push of an organisation (storage key). Raises NotFound (`push_not_found`)."""
    push = reader.audit_push(organisation)
    if push is None:
        raise NotFound("The audit trail of this organisation is not pushed.", code="push_not_found")
    return push


def with_secret(push: AuditPush, sealed: bytes, tail: str, at: int) -> AuditPush:
    """Return the push with a new secret. The current one also signs for 24 hours."""
    return replace(
        push,
        sealed_secret=sealed,
        secret_tail=tail,
        old_secret=push.sealed_secret,
        old_secret_until=at + SECRET_OVERLAP_MS,
        updated_at=at,
    )


def push_view(push: AuditPush, pending: int, secret: str | None = None) -> dict[str, Any]:
    """Return the push object.

    The secret is masked unless it is given, at its creation or rotation.

    Args:
        pending: number of unpushed records.
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
