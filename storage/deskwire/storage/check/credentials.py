"""Checks of stored credentials: sealed signing secrets, and machine credentials whose creator has left."""

from __future__ import annotations

from collections.abc import Iterator

from deskwire.engine.accounts.machines import state_of_user
from deskwire.engine.core.encryption import DecryptionFailed, Encryption
from deskwire.engine.core.secret import Secrets
from deskwire.storage.check.rules import CheckProblem
from deskwire.storage.connection import Connection
from deskwire.storage.tables.accounts.people import granted


def broken_seals(connection: Connection, secrets: Secrets | None) -> Iterator[CheckProblem]:
    """Yield endpoints, channels, users with an authenticator app, and waiting mails whose secret can't be decrypted."""
    rows = connection.execute(
        "SELECT id, sealed_secret FROM endpoints WHERE status <> 'removed' "
        "UNION ALL SELECT id, sealed_secret FROM channels WHERE removed_at IS NULL "
        'UNION ALL SELECT u.id, t.sealed_secret FROM totps t JOIN users u ON u.rowid = t."user" WHERE t.confirmed = 1 '
        "UNION ALL SELECT id, sealed FROM mails WHERE status = 'waiting' AND sealed IS NOT NULL"
    ).fetchall()
    if not rows:
        return
    if secrets is None:
        yield CheckProblem(
            "secret_missing",
            f"There are {len(rows)} webhook endpoints, channels, authenticator apps and waiting mails, and no secret to open theirs.",
        )
        return
    sealing = Encryption(secrets)
    for owner, sealed in rows:
        try:
            sealing.open(sealed)
        except DecryptionFailed:
            yield CheckProblem("secret_wrong", f"The secret of {owner} was sealed under another secret.")


def stray_credentials(connection: Connection, now: int) -> Iterator[str]:
    """Yield a note for each valid credential whose creator has left or no longer has the permissions to create it."""
    rows = connection.execute(
        "SELECT m.id, m.name, m.permissions, m.made_by_id, m.expires_at, s.role, r.permissions FROM machine_credentials m "
        "JOIN projects p ON p.rowid = m.project LEFT JOIN users u ON u.id = m.made_by_id "
        'LEFT JOIN memberships s ON s.organisation = p.organisation AND s."user" = u.rowid '
        "LEFT JOIN roles r ON r.id = s.role AND r.organisation = s.organisation "
        "WHERE m.made_by = 'user' AND m.revoked_at IS NULL ORDER BY m.rowid"
    )
    for credential, name, permissions, maker, ends_at, role, held in rows.fetchall():
        if ends_at is not None and ends_at <= now:
            continue
        match state_of_user(
            filter(None, permissions.split(",")), None if role is None else granted(role, held)
        ):
            case "left":
                yield f"The machine credential {name!r} ({credential}) was created by {maker}, who has left the organisation."
            case "demoted":
                yield f"The machine credential {name!r} ({credential}) has permissions that {maker}, who created it, no longer has."
