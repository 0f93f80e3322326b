"""The identity of the database: one refusal at a time, logged when it begins and when it ends."""

from __future__ import annotations

from structlog.testing import capture_logs

from deskwire.engine.core.database_identity import REASONS, DatabaseIdentity


def test_identity_logs_a_refusal_once_and_its_end() -> None:
    identity = DatabaseIdentity()
    with capture_logs() as logs:
        identity.accept()
        identity.refuse("older_timeline", "Timeline 1 instead of 2.")
        identity.refuse("older_timeline", "Timeline 1 instead of 3.")
        identity.refuse("other_system", "System 1 instead of 2.")
        identity.accept()
        identity.accept()

    assert [(line["event"], line["reason"]) for line in logs] == [
        ("database.identity_refused", "older_timeline"),
        ("database.identity_refused", "other_system"),
        ("database.identity_accepted", "other_system"),
    ]


def test_identity_counts_the_present_reason_alone() -> None:
    identity = DatabaseIdentity()
    assert identity.by_reason() == dict.fromkeys(REASONS, 0)
    identity.refuse("file_gone", "There is no file.")
    assert identity.by_reason() == {**dict.fromkeys(REASONS, 0), "file_gone": 1}
