"""X"""

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
"""The former and the new value of each field; no secret is ever among them."""

COUNT_WINDOW_MS: Final = 900_000
"""The quarter of an hour within which repetitions share a record."""

NETWORKS_MAX: Final = 2_000
"""The counted records of a quarter of an hour that have a network of their own; further ones share one record."""

UNKNOWN_ACCOUNT_NETWORKS_MAX: Final = 200
"""The same of sign-ins to accounts that do not exist, so that a flood of these hides nothing of the others."""


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
    """A deed: an action on an object, with its changes and details.

    A counted one (see `actions`) has a record for each actor, object, network and quarter of an hour: whoever does it a
    million times adds to a count, and to the numbers among the details.

    Args:
        action: a name in ACTIONS.
        object: id of what it was done to, if that exists.
        organisation, project: storage keys of whose trail has it; a project's is that of its organisation.
        account: storage key of a user, for what concerns all organisations that this one is a member of: each has a
            record of its own. Of what is in no organisation the operator alone reads.
        details: words and numbers that are no change of a field.
        times: what it adds to the `count` of a counted one; 0 adds to the numbers of what was recorded before.
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
    """A record as it is stored, with names that are looked up: `None` for what has none (any more).

    Args:
        count, last_at: how often, and when (ms) for the last time.
        organisation_id, project_id: where it belongs.
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
    """A filter of records; None means any.

    Args:
        actor: an id, or a type of actor.
        object: an id.
        since, until: when it was done for the first time (ms), the latter excluded.
    """

    actor: str | None = None
    action: str | None = None
    object: str | None = None
    since: int | None = None
    until: int | None = None


def record_view(record: AuditRecord) -> dict[str, Any]:
    """Return the record as the API, the export and the commands show it."""
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
    """Queries on the trail."""

    def audit_records(
        self, organisation: int | None, wanted: AuditFilter, before: int | None, limit: int
    ) -> Sequence[AuditRecord]:
        """Return records of an organisation, or with None of all, newest first, of positions below `before`."""

    def audit_records_after(
        self, organisation: int | None, wanted: AuditFilter, after: int, limit: int
    ) -> Sequence[AuditRecord]:
        """Return the same, oldest first, of positions above `after`."""


class AuditTransaction(AuditReader, Protocol):
    """Changes of the trail. The changes that it is about record themselves; see `storage.tables.audit`."""

    def signed(self, by: ChangeOrigin) -> AbstractContextManager[None]:
        """Record in this name what is done within the context."""

    def record(self, *deeds: AuditEntry) -> None:
        """Record what is done in this transaction, in the name of `signed`."""

    def prune_audit(self, older_than: int, limit: int) -> int:
        """Remove up to `limit` records of what was last done before `older_than` (ms); return their number."""


T = TypeVar("T")
R = TypeVar("R")
W = TypeVar("W", bound=AuditTransaction)


class AttributedStore(Struct, Generic[R, W], frozen=True):
    """A store whose writes the audit trail records as done by `by`."""

    by: ChangeOrigin
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
            with tx.signed(self.by):
                return job(tx)

        return InlineJob(signed) if isinstance(job, InlineJob) else signed


class RecordingHook(Struct, Generic[T], frozen=True):
    """A `CommitHook` that records what a job has done, in the commit of an actor or a service with a store of its own."""

    by: ChangeOrigin
    deeds: Callable[[T], Sequence[AuditEntry]]

    def before(self, _tx: object) -> None:
        """Do nothing before the job."""

    def after(self, tx: AuditTransaction, result: T) -> None:
        """Record what the job has done."""
        with tx.signed(self.by):
            tx.record(*self.deeds(result))
