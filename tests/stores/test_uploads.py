"""The entries of uploads' contents, as the nodes' shared file store adds and removes them (ADR 17)."""

from __future__ import annotations

from typing import Any

from deskwire.engine.uploads.ports import FileContent
from tests.support.builders import NOON, PROJECT

CONTENT = FileContent(PROJECT.rowid, "0" * 64)


def test_removed_content_is_overwritten_after_its_removal_not_its_upload(
    tx: Any,
) -> None:
    entry = tx.claim_content(CONTENT, NOON)
    assert tx.retire_content(CONTENT) == [entry]
    assert tx.conn.execute("SELECT scrub_due FROM event_window").fetchone()[0] == 0
    tx.delete_content_entry(entry)
    assert tx.abandoned_contents(NOON, 10) == []
    assert tx.conn.execute("SELECT scrub_due FROM event_window").fetchone()[0] > 0
