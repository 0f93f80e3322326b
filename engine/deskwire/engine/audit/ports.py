"""The queries and changes of a store that the audit trail needs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

from deskwire.engine.audit.trail import AuditFilter, AuditRecord, ChangeOrigin, Deed


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

    def record(self, *deeds: Deed) -> None:
        """Record what is done in this transaction, in the name of `signed`."""

    def prune_audit(self, older_than: int, limit: int) -> int:
        """Remove up to `limit` records of what was last done before `older_than` (ms); return their number."""
