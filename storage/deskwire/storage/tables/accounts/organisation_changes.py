"""Changes of organisations, their members, projects, keys and accounts, each recorded in the audit trail.

Separate from the queries, because read-only commands must start fast.
"""

from __future__ import annotations

from deskwire.engine.accounts.people import Organisation, Project, Role, User
from deskwire.engine.audit.audited_changes import account_changed, organisation_changed, project_changed
from deskwire.engine.audit.trail import AuditEntry
from deskwire.storage.tables.accounts.factors import FactorWrites
from deskwire.storage.tables.accounts.known_browsers import KnownBrowserWrites
from deskwire.storage.tables.accounts.links import LinkWrites
from deskwire.storage.tables.accounts.machines import MachineWrites
from deskwire.storage.tables.accounts.notifications import NotificationSettingsWrites
from deskwire.storage.tables.accounts.oidc import IdentityWrites
from deskwire.storage.tables.accounts.organisations import OrganisationReads
from deskwire.storage.tables.accounts.people import (
    PROJECT,
    USER,
    PeopleReads,
    PeopleWrites,
    as_project,
    as_user,
)
from deskwire.storage.tables.accounts.web_push import WebPushWrites
from deskwire.storage.tables.conversations.held_messages import HeldWrites
from deskwire.storage.tables.conversations.mentions import MentionWrites
from deskwire.storage.tables.conversations.saved_views import SavedViewWrites


class OrganisationWrites(
    OrganisationReads,
    HeldWrites,
    MentionWrites,
    SavedViewWrites,
    PeopleReads,
    PeopleWrites,
    MachineWrites,
    KnownBrowserWrites,
    IdentityWrites,
    LinkWrites,
    FactorWrites,
    NotificationSettingsWrites,
    WebPushWrites,
):
    """Changes. Implements `OrganisationTransaction`."""

    def save_organisation(self, organisation: Organisation) -> None:
        before = self.organisation_of(organisation.rowid)
        self.conn.execute(
            "UPDATE organisations SET name = ?, session_idle_s = ?, session_max_s = ? WHERE rowid = ?",
            (organisation.name, organisation.session_idle_s, organisation.session_max_s, organisation.rowid),
        )
        self.record(*organisation_changed(before, organisation))

    def delete_organisation(self, organisation: int, at: int) -> None:
        sql = "UPDATE organisations SET deleted_at = ? WHERE rowid = ?"
        self.conn.execute(sql, (at, organisation))
        self.conn.execute("DELETE FROM roles WHERE organisation = ?", (organisation,))
        self.delete_invitations_of(organisation)
        before = self.organisation_of(organisation)
        self.record(AuditEntry("organisation.deleted", before.id, organisation=organisation))

    def save_project(self, project: Project) -> None:
        chosen = project.settings
        sql = f"SELECT {PROJECT} FROM projects p WHERE p.rowid = ?"
        self.record(
            *project_changed(as_project(self.conn.execute(sql, (project.rowid,)).fetchone()), project)
        )
        self.conn.execute(
            "UPDATE projects SET name = ?, memory_enabled = ?, archived_retention_days = ?, primary_language = ?, "
            "languages = ?, upload_quota_bytes = ? WHERE rowid = ?",
            (
                project.name,
                chosen.memory_enabled,
                chosen.archived_retention_days,
                chosen.primary_language,
                ",".join(chosen.languages),
                chosen.upload_quota_bytes,
                project.rowid,
            ),
        )

    def remove_project(self, project: int, at: int) -> None:
        in_force = self.conn.execute(
            "SELECT rowid FROM server_keys WHERE project = ? AND revoked_at IS NULL", (project,)
        )
        for (key,) in in_force.fetchall():
            self.revoke_key(key, at)
        self.revoke_machines(project, at)
        self.conn.execute("UPDATE projects SET removed_at = ? WHERE rowid = ?", (at, project))
        (project_id,) = self.conn.execute("SELECT id FROM projects WHERE rowid = ?", (project,)).fetchone()
        self.record(AuditEntry("project.deleted", project_id, project=project))

    def set_role(self, organisation: int, user: int, role: Role) -> None:
        before = self._role_id(organisation, user)
        sql = "UPDATE memberships SET role = ? WHERE organisation = ? AND memberships.user = ?"
        self.conn.execute(sql, (role, organisation, user))
        if before != role:
            self.record_member("member.role_changed", organisation, user, before, role)

    def _role_id(self, organisation: int, user: int) -> Role | None:
        role = self.role(organisation, user)
        return None if role is None else role.id

    def delete_membership(self, organisation: int, user: int) -> None:
        gone = dict(self.forget_writing(user, organisation))
        if views := self.forget_own_views(user, organisation):
            gone["views"] = views
        self.record_member(
            "member.removed", organisation, user, self._role_id(organisation, user), None, gone
        )
        self.conn.execute(
            "DELETE FROM team_members WHERE team_members.user = ? AND team IN "
            "(SELECT t.rowid FROM teams t JOIN projects p ON p.rowid = t.project WHERE p.organisation = ?)",
            (user, organisation),
        )
        self.conn.execute(
            "DELETE FROM agent_seen WHERE agent_seen.user = :user AND conversation IN (SELECT c.rowid FROM agent_seen s "
            "JOIN conversations c ON c.rowid = s.conversation JOIN projects p ON p.rowid = c.project "
            "WHERE s.user = :user AND p.organisation = :organisation)",
            {"user": user, "organisation": organisation},
        )
        self.conn.execute(
            "DELETE FROM seen_marks WHERE seen_marks.user = ? AND project IN "
            "(SELECT p.rowid FROM projects p WHERE p.organisation = ?)",
            (user, organisation),
        )
        self.conn.execute(
            "DELETE FROM memberships WHERE organisation = ? AND memberships.user = ?", (organisation, user)
        )
        # After the membership, which a commit that mentions the user keeps locked.
        self.forget_involvement(user, organisation)

    def save_user(self, user: User) -> None:
        row = self.conn.execute(f"SELECT {USER} FROM users u WHERE u.rowid = ?", (user.rowid,)).fetchone()
        self.record(*account_changed(as_user(row), user))
        self.conn.execute(
            "UPDATE users SET name = ?, password_hash = ?, password_temporary = ?, password_made_at = ?, generation = ?, "
            "home = ? WHERE rowid = ?",
            (
                user.name,
                user.password_hash,
                user.password_temporary,
                user.password_made_at,
                user.generation,
                user.home,
                user.rowid,
            ),
        )

    def forget_ways_to_sign_in(self, user: int) -> None:
        had = self.factors(user)
        self.delete_factors(user)
        if had.any:
            self.record_factor("account.factors_reset", user, None)
        for identity in self.identities_of(user):
            self.delete_identity(identity, user)

    def delete_user(self, user: int, at: int) -> None:
        user_id, email = self.conn.execute("SELECT id, email FROM users WHERE rowid = ?", (user,)).fetchone()
        self.record(AuditEntry("account.deleted", user_id, account=user))
        self.forget_address(user, email)
        self.redact_user_in_audit(user_id)
        self.conn.execute("DELETE FROM agent_seen WHERE agent_seen.user = ?", (user,))
        self.conn.execute("DELETE FROM seen_marks WHERE seen_marks.user = ?", (user,))
        # They name the user's clients. The next generation, below, refuses the tokens themselves.
        self.conn.execute('DELETE FROM access_tokens WHERE access_tokens."user" = ?', (user,))
        self.forget_browsers(user)
        # Address and `sub` are personal data, and the provider's user may sign in again only as a stranger.
        self.conn.execute('DELETE FROM identities WHERE identities."user" = ?', (user,))
        self.delete_factors(user)
        self.forget_notification_settings(user)
        self.forget_pushes(user)
        self.forget_writing(user, None)
        self.forget_own_views(user, None)
        self.forget_involvement(user, None)
        self.conn.execute(
            "UPDATE users SET email = id, folded = NULL, name = '', password_hash = NULL, generation = generation + 1, deleted_at = ? "
            "WHERE rowid = ?",
            (at, user),
        )
        self.want_scrub()

    def revoke_key(self, key: int, at: int) -> None:
        self.conn.execute("UPDATE server_keys SET revoked_at = ? WHERE rowid = ?", (at, key))
        row = self.conn.execute("SELECT id, project FROM server_keys WHERE rowid = ?", (key,)).fetchone()
        self.record(AuditEntry("key.revoked", row[0], project=row[1]))
