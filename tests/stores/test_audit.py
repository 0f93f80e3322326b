"""The audit trail in the database: written in the transaction of the change, bounded, and pruned in order (ADR 45)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from deskwire.engine.accounts.people import User
from deskwire.engine.audit.audited_changes import sign_in_failed
from deskwire.engine.audit.trail import COUNT_WINDOW_MS, AuditEntry, AuditFilter, AuditRecord, ChangeOrigin
from deskwire.engine.core.actor import Actor
from deskwire.engine.ports import Transaction
from deskwire.storage.tables import audit
from tests.support.builders import NOON, InlineStore
from tests.support.seeing import seen

ANYBODY: Final = Actor("anonymous")
TABLES: Final = (
    "organisations|projects|users|memberships|server_keys|machine_credentials|endpoints|channels|contacts"
)
WRITES: Final = re.compile(rf"(?:INSERT (?:OR \w+ )?INTO|UPDATE|DELETE FROM) (?:{TABLES})\b")

SILENT: Final = {
    "touch_key": "when a key was last used",
    "touch_machine": "when a machine credential was last used",
    "record_last_delivery": "what became of deliveries",
    "save_circuit": "what became of deliveries",
    "circuit_changes": "a lock of the row, which changes nothing",
    "release_held": "what became of deliveries",
    "clear_held_position": "what became of deliveries",
    "forget_old_secrets": "what was announced at the rotation",
    "renew_seals": "the same secrets under another seal; the rotation is recorded",
    "renew_channel_seals": "the same secrets under another seal; the rotation is recorded",
    "_delete_endpoint": "the rest of an endpoint whose removal is recorded",
    "__init__": "a trigger that says when rights change",
    "insert_contact": "content",
    "save_contact": "content",
    "save_profile": "content",
    "save_block": "the call that blocks or unblocks records it",
    "end_merge": "the end of a merge whose begin is recorded",
    "abort_merges": "the end of merges whose begin is recorded, by an erasure that is recorded, too",
    "erase_contact_row": "the end of an erasure whose begin is recorded",
}
"""Methods that write one of these tables without a record, each with the reason."""


def functions() -> Iterator[tuple[str, ast.FunctionDef]]:
    folder = Path(audit.__file__).parents[1]
    for path in sorted(folder.rglob("*.py")):
        if path.parent.name != "migrations":
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef):
                    yield node.name, node


def test_every_method_that_writes_the_audited_tables_records_it() -> None:
    """Require that a new method either records, or is listed in SILENT with a reason."""
    silent, found = set(), set()
    for name, node in functions():
        said = " ".join(
            each.value
            for each in ast.walk(node)
            if isinstance(each, ast.Constant) and isinstance(each.value, str)
        )
        calls = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)}
        if WRITES.search(said):
            found.add(name)
            if not calls & {"record", "record_member"}:
                silent.add(name)
        if "_insert" in calls:  # its table is an argument
            assert calls & {"record", "record_member"}, name
    assert silent == SILENT.keys()
    assert len(found - silent) >= 10


def records(store: InlineStore) -> list[AuditRecord]:
    return list(seen(store, lambda reader: reader.audit_records_after(None, AuditFilter(), 0, 1_000)))


def fail(store: InlineStore, address: str | None, at: int = NOON, user: User | None = None) -> None:
    def job(tx: Transaction) -> None:
        with tx.signed(ChangeOrigin(ANYBODY, at, address)):
            tx.record(sign_in_failed(user, "invalid_login"))

    store.at_once(job)


@pytest.fixture
def empty(inline_store: InlineStore) -> InlineStore:
    """Return a store whose trail lacks the creation of the projects."""
    inline_store.at_once(lambda tx: tx.prune_audit(1, 1_000))
    assert records(inline_store) == []
    return inline_store


def test_rolled_back_change_leaves_no_record(empty: InlineStore) -> None:
    def job(tx: Transaction) -> None:
        tx.insert_organisation("org_x", "X", NOON)
        raise ValueError

    with pytest.raises(ValueError):  # noqa: PT011  # our own
        empty.at_once(job)
    assert records(empty) == []


def test_innermost_signature_names_the_actor_within_its_context(empty: InlineStore) -> None:
    first, second = ChangeOrigin(Actor("user", "usr_1"), NOON), ChangeOrigin(Actor("operator", "root"), NOON)

    def job(tx: Transaction) -> None:
        with tx.signed(first):
            with tx.signed(second):
                tx.insert_organisation("org_b", "B", NOON)
            tx.insert_organisation("org_c", "C", NOON)
        tx.insert_organisation("org_d", "D", NOON)

    empty.at_once(job)
    assert [each.actor.type for each in records(empty)] == ["operator", "user", "unknown"]


def test_repetitions_share_a_record_until_the_quarter_of_an_hour_ends(empty: InlineStore) -> None:
    begin = NOON // COUNT_WINDOW_MS * COUNT_WINDOW_MS
    for at in (begin, begin + 10, begin + COUNT_WINDOW_MS - 1, begin + COUNT_WINDOW_MS):
        fail(empty, "203.0.113.7", at)
    assert [(each.count, each.at, each.last_at) for each in records(empty)] == [
        (3, begin, begin + COUNT_WINDOW_MS - 1),
        (1, begin + COUNT_WINDOW_MS, begin + COUNT_WINDOW_MS),
    ]


def test_numbers_among_the_details_are_added_up(empty: InlineStore) -> None:
    deed = AuditEntry("webhook.replayed", "whk_1", project=1, details={"deliveries": 7})
    for _ in range(3):
        empty.at_once(lambda tx: tx.record(deed))
    (record,) = records(empty)
    assert (record.count, record.details) == (3, {"deliveries": 21})


def test_failures_beyond_the_limit_of_addresses_share_a_record(
    empty: InlineStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "NETWORKS_MAX", 5)
    monkeypatch.setattr(audit, "UNKNOWN_ACCOUNT_NETWORKS_MAX", 3)
    known = empty.at_once(lambda tx: tx.insert_user("usr_1", "ada@example.com", "Ada", None, NOON))
    empty.at_once(lambda tx: tx.prune_audit(1, 1_000))
    for number in range(40):
        fail(empty, f"203.0.113.{number}", user=None)
    for number in range(40):
        fail(empty, f"203.0.113.{number}", user=known)
    fail(empty, "203.0.113.0", user=known)  # an address that has a record of its own
    found = [(each.object, each.address, each.count) for each in records(empty)]
    assert [each for each in found if each[0] is None] == [
        *((None, f"203.0.113.{number}", 1) for number in range(3)),
        (None, None, 37),
    ]
    assert [each for each in found if each[0] == "usr_1"] == [
        ("usr_1", "203.0.113.0", 2),
        *(("usr_1", f"203.0.113.{number}", 1) for number in range(1, 5)),
        ("usr_1", None, 35),
    ]


def test_pruning_removes_the_oldest_and_stores_the_start_of_the_trail(empty: InlineStore) -> None:
    for number in range(5):
        fail(empty, None, NOON + number * COUNT_WINDOW_MS)
    assert empty.at_once(lambda tx: tx.prune_audit(NOON + 3 * COUNT_WINDOW_MS, 2)) == 2
    assert empty.at_once(lambda tx: tx.prune_audit(NOON + 3 * COUNT_WINDOW_MS, 2)) == 1
    assert empty.at_once(lambda tx: tx.prune_audit(NOON + 3 * COUNT_WINDOW_MS, 2)) == 0
    assert len(records(empty)) == 2
    (since,) = seen(empty, lambda reader: reader.conn.execute("SELECT since FROM audit_window").fetchone())  # type: ignore[attr-defined]
    assert since >= NOON + 3 * COUNT_WINDOW_MS
