"""Queries and changes of the first steps of a project."""

from __future__ import annotations

from typing import Final

from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.setup import SetupState
from deskwire.engine.audit.audited_changes import setup_changed
from deskwire.storage.tables.accounts.factors import HAS_FACTOR
from deskwire.storage.tables.audit import AuditWrites
from deskwire.storage.tables.base import Queries

_STATE: Final = (
    "SELECT (SELECT p.setup_hidden FROM projects p WHERE p.rowid = :project), "
    "EXISTS (SELECT 1 FROM contact_sessions s JOIN channels c ON c.rowid = s.channel WHERE c.project = :project), "
    "EXISTS (SELECT 1 FROM memberships m WHERE m.organisation = :organisation AND "
    'm."user" != :user) OR EXISTS (SELECT 1 FROM invitations i WHERE i.organisation = :organisation), '
    "EXISTS (SELECT 1 FROM imported_conversations i WHERE i.project = :project), "
    "EXISTS (SELECT 1 FROM endpoints e WHERE e.project = :project AND e.status != 'removed') "
    "OR EXISTS (SELECT 1 FROM consumers q WHERE q.project = :project), "
) + HAS_FACTOR.format(":user")
"""Each part reads at most one row of an index."""
_HIDE: Final = "UPDATE projects SET setup_hidden = ? WHERE rowid = ? AND setup_hidden <> ?"


class SetupReads(Queries):
    """Implements `SetupReader`."""

    def setup_state(self, project: int, organisation: int, user: int) -> SetupState:
        values = {"project": project, "organisation": organisation, "user": user}
        row = self.conn.execute(_STATE, values).fetchone()
        return SetupState(*(bool(each) for each in row))


class SetupWrites(SetupReads, AuditWrites):
    """Implements `SetupTransaction`."""

    def hide_setup(self, project: Project, *, hidden: bool) -> None:
        if self.conn.execute(_HIDE, (int(hidden), project.rowid, int(hidden))).rowcount:
            self.record(setup_changed(project, hidden=hidden))
