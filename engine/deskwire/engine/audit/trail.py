"""The records of the audit trail, the store port for them, and the attribution of writes to an origin (ADR 45)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Generic, Literal, Protocol, TypeAlias, TypeVar, get_args

from msgspec import Struct, field

from deskwire.engine.audit.actions import ACTIONS
from deskwire.engine.core.actor import Actor
from deskwire.engine.core.clock import iso
from deskwire.engine.core.store import InlineJob, Store

AuditActorType = Literal["user", "server_key", "machine", "operator", "system", "anonymous", "unknown"]
ACTOR_TYPES: Final[tuple[AuditActorType, ...]] = get_args(AuditActorType)

Detail: TypeAlias = str | int | None
Changes: TypeAlias = Mapping[str, tuple[Any, Any]]
"""The previous and the new value of each field. Secrets are never included."""

COUNT_WINDOW_MS: Final = 900_000
"""The window within which repetitions of an action share a record."""

NETWORKS_MAX: Final = 2_000
"""Maximum number of counted records per window that are separate by network. Further ones share one record."""

UNKNOWN_ACCOUNT_NETWORKS_MAX: Final = 200
"""The same limit for sign-ins to unknown accounts, so that a flood of them does not hide other records."""


class ChangeOrigin(Struct, frozen=True):
    """The actor, time (ms), client address and request id of a change.

    Args:
        address: client address, as reported by trusted proxies.
    """

    actor: Actor
    at: int = 0
    address: str | None = None
    request_id: str | None = None


# No call of the service may leave a record of this origin; every test checks that (`tests/support/api/service.py`).
UNKNOWN_ORIGIN: Final = ChangeOrigin(Actor("unknown"))


class AuditEntry(Struct, frozen=True):
    """An entry to be recorded: an action on an object, with its changes and details.

    A counted action (see `actions`) has one record per actor, object, network and window. Each repetition adds to its count,
    and to the numbers in its details.

    Args:
        action: a name in ACTIONS.
        object: id of the object, None if it does not exist.
        organisation, project: storage keys that select the organisation whose trail gets the record.
        account: storage key of a user. If no organisation or project is given, each organisation of this user gets a record.
            An entry without any organisation is visible to the operator only.
        details: further texts and numbers that are not changes of a field.
        times: number added to `count` of a counted action. 0 only adds the numbers in the details to the existing record.
    """

    action: str
    object: str | None
    organisation: int | None = None
    project: int | None = None
    account: int | None = None
    changes: Changes = field(default_factory=dict)
    details: Mapping[str, Detail] = field(default_factory=dict)
    times: int = 1


class AuditRecord(Struct, frozen=True):
    """A stored record, with names looked up at the time of reading.

    A name is None if the object has none or is gone.

    Args:
        count, last_at: number of occurrences, and time (ms) of the last one.
        organisation_id, project_id: ids of the organisation and project that it belongs to.
    """

    position: int
    id: str
    at: int
    last_at: int
    count: int
    action: str
    actor: Actor
    object: str | None
    object_name: str | None
    organisation_id: str | None
    project_id: str | None
    changes: Mapping[str, Any]
    details: Mapping[str, Detail]
    address: str | None
    request_id: str | None


class AuditFilter(Struct, frozen=True):
    """A filter of records. None means any.

    Args:
        actor: id or type of an actor.
        object: id of an object.
        since, until: bounds of the first occurrence (ms). `until` is exclusive.
    """

    actor: str | None = None
    action: str | None = None
    object: str | None = None
    since: int | None = None
    until: int | None = None


def record_view(record: AuditRecord) -> dict[str, Any]:
    """Return the record object of the API, the export and the commands."""
    return {
        "id": record.id,
        "at": iso(record.at),
        "action": record.action,
        "actor": {"type": record.actor.type, "id": record.actor.id, "name": record.actor.name},
        "object": {
            "type": ACTIONS[record.action].object,
            "id": record.object,
            "name": record.object_name,
        },
        "organisationId": record.organisation_id,
        "projectId": record.project_id,
        "changes": record.changes,
        "details": record.details,
        "address": record.address,
        "requestId": record.request_id,
        "count": record.count,
        "lastAt": iso(record.last_at),
    }


class AuditReader(Protocol):
    """Queries on the audit trail."""

    def audit_records(
        self, organisation: int | None, wanted: AuditFilter, before: int | None, limit: int
    ) -> Sequence[AuditRecord]:
        """Return records of an organisation, or of all with None, newest first, with positions below `before`."""

    def audit_records_after(
        self, organisation: int | None, wanted: AuditFilter, after: int, limit: int
    ) -> Sequence[AuditRecord]:
        """Return records of an organisation, or of all with None, oldest first, with positions above `after`."""


class AuditTransaction(AuditReader, Protocol):
    """Changes of the audit trail.

    The write methods of audited tables add their entries themselves (`storage.tables.audit`).
    """

    def signed(self, origin: ChangeOrigin) -> AbstractContextManager[None]:
        """Attribute the entries recorded in the block to an origin."""

    def record(self, *entries: AuditEntry) -> None:
        """Record entries, attributed to the origin of the surrounding `signed` block."""

    def prune_audit(self, older_than: int, limit: int) -> int:
        """Delete up to `limit` records whose last occurrence was before `older_than` (ms).

        Return the number of deleted ones.
        """


T = TypeVar("T")
R = TypeVar("R")
W = TypeVar("W", bound=AuditTransaction)


class AttributedStore(Struct, Generic[R, W], frozen=True):
    """A store whose writes are attributed to `origin` in the audit trail."""

    origin: ChangeOrigin
    store: Store[R, W]

    async def write(self, job: Callable[[W], T]) -> T:
        """See `Store.write`."""
        return await self.store.write(self._signed(job))

    def submit(self, job: Callable[[W], T], ended: Callable[[T | Exception], None]) -> None:
        """See `Store.submit`."""
        self.store.submit(self._signed(job), ended)

    async def read(self, query: Callable[[R], T]) -> T:
        """See `Store.read`."""
        return await self.store.read(query)

    def _signed(self, job: Callable[[W], T]) -> Callable[[W], T]:
        def signed(tx: W) -> T:
            with tx.signed(self.origin):
                return job(tx)

        return InlineJob(signed) if isinstance(job, InlineJob) else signed


class RecordingHook(Struct, Generic[T], frozen=True):
    """A `CommitHook` that records audit entries for the result of a job, in the commit of the job."""

    origin: ChangeOrigin
    entries: Callable[[T], Sequence[AuditEntry]]

    def before(self, _tx: object) -> None:
        """Do nothing."""

    def after(self, tx: AuditTransaction, result: T) -> None:
        """Record the entries for the result."""
        with tx.signed(self.origin):
            tx.record(*self.entries(result))
