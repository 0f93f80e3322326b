"""A check reports all problems of a data directory, and none in a sound one."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import trio

from deskwire.engine.core.secret import Secrets
from deskwire.storage.check.rules import RULES
from deskwire.storage.files import DiskFiles
from deskwire.storage.sqlite.check import check
from deskwire.storage.sqlite.directory import FILE_NAME, DataDirectoryError
from tests.storage.backup.conftest import CONTENT, FILE, SECRET, fill
from tests.support.builders import PROJECT, post, running


def change(directory: Path, *statements: str) -> None:
    """Damage a database with SQL statements."""
    with closing(sqlite3.connect(directory / FILE_NAME)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def codes(directory: Path, secret: str | None = SECRET, *, contents: bool = True) -> set[str]:
    """Return the codes of the problems that a check finds."""
    secrets = None if secret is None else Secrets(secret)
    return {each.code for each in check(directory, secrets, contents=contents, settled_s=0).problems}


def test_a_directory_that_is_well_has_no_problems(data: Path) -> None:
    report = check(data, Secrets(SECRET), contents=True, settled_s=0)
    assert (report.problems, report.notes, report.files) == ([], [], 1)
    assert report.rows["messages"] == 3


async def test_a_service_that_is_busy_has_none_either(tmp_path: Path) -> None:
    conversation_id = await fill(tmp_path)
    done = trio.Event()
    async with running(tmp_path) as engine, trio.open_nursery() as nursery:

        async def talk() -> None:
            while not done.is_set():
                await engine.directory.ask(PROJECT, conversation_id, post())

        nursery.start_soon(talk)
        for _ in range(5):
            assert await trio.to_thread.run_sync(codes, tmp_path) == set()
        done.set()


ANOTHER = "INSERT INTO projects (rowid, id, organisation, name, stream_key, created_at) VALUES (99, 'prj_99', 1, 'x', 'x', 0)"
"""Creates another project."""

BROKEN = {
    "sequence_hole": "DELETE FROM events WHERE sequence = 2",
    "sequence_start": "DELETE FROM events WHERE sequence = 1",
    "sequence_behind": "UPDATE conversations SET sequence = 7",
    "events_lost": "DELETE FROM events",
    "event_order": "UPDATE events SET id = 'evt_0' WHERE sequence = 3",
    "event_of_nothing": "UPDATE events SET conversation = 99",
    "event_of_no_ticket": "UPDATE events SET ticket = 99",
    "event_shown": "UPDATE events SET type = 'note.created' WHERE sequence = 3",
    "events_of_project": "INSERT INTO project_events VALUES (1, 99)",
    "internal_delivery": "UPDATE deliveries SET type = 'memory.changed'",
    "message_count": "UPDATE messages SET number = 5 WHERE number = 1",
    "contact_message_count": "UPDATE conversations SET contact_messages = 9",
    "message_sequence": "UPDATE messages SET sequence = 77",
    "mention_of_nothing": "UPDATE mentions SET message = 'msg_0'",
    "follower_elsewhere": f"{ANOTHER}; UPDATE followers SET project = 99",
    "draft_of_nothing": f"{ANOTHER}; UPDATE drafts SET project = 99",
    "held_and_sent": "UPDATE held_messages SET id = (SELECT max(id) FROM messages)",
    "held_of_nothing": f"{ANOTHER}; UPDATE held_messages SET project = 99",
    "hour_of_activity": "UPDATE conversations SET hour = 7",
    "activity_without_message": "UPDATE conversations SET last_message_at = 7, activity = 7",
    "seen_ahead": "INSERT INTO users (rowid, id, email, name, created_at) VALUES (9, 'usr_1', 'a', 'A', 0); "
    "INSERT INTO agent_seen VALUES (9, 1, 99, 0, 0)",
    "routed_ahead": """UPDATE conversations SET routed = '{"1": 9}'""",
    "waiting_for_nothing": "UPDATE conversations SET waiting_since = 7",
    "no_answer_to_nothing": "UPDATE conversations SET no_answer_needed_since = 7",
    "merged_wrong": "UPDATE conversations SET merged_into = 'cnv_0'",
    "split_wrong": "UPDATE conversations SET split_from = 'cnv_0'",
    "splits_differ": "UPDATE conversations SET split_into = '[\"cnv_0\"]'",
    "split_message_wrong": "UPDATE messages SET shown_in = 'cnv_0'",
    "merged_differ": "UPDATE conversations SET merged = '[\"cnv_0\"]'",
    "milestones_differ": "UPDATE conversations SET status = 'CLOSED', waiting_since = NULL",
    "answer_differs": "UPDATE conversations SET answered_at = 7",
    "rating_differs": "UPDATE conversations SET rating = 7",
    "message_of_project": "UPDATE messages SET project = 99",
    "message_times_differ": "UPDATE message_times_end SET message = 2",
    "attributes_differ": "INSERT INTO conversation_attributes VALUES (1, 'plan', 'gold', 1)",
    "tags_differ": "INSERT INTO conversation_tags (project, folded, conversation, tag) VALUES (1, 'vip', 1, 'vip')",
    "delivery_to_nowhere": "DELETE FROM endpoints",
    "delivery_of_nothing": "UPDATE deliveries SET event = 99",
    "attempt_of_nothing": "INSERT INTO attempts VALUES (99, 1, 0, 0, NULL, NULL, x'')",
    "consumer_ahead": (
        "INSERT INTO consumers (project, channel, consumer, generation, position, superseded, since, updated_at) "
        "VALUES (1, 'c', 'me', 1, 99, '[]', 0, 0)"
    ),
    "attached_to_nothing": "DELETE FROM attachments",
    "upload_usage": "UPDATE upload_usage SET bytes = bytes + 1",
    "response_count": "INSERT INTO surveys (id, project, name, status, version, responses, created_at, updated_at) "
    "VALUES ('srv_1', 1, 'S', 'OPEN', 1, 3, 0, 0)",
    "contact_words": "UPDATE contact_words SET project = 99",
    "audit_missing": "INSERT INTO organisations (rowid, id, name, created_at) VALUES (9, 'org_9', 'Made by hand', 9000000000000)",
    "audit_of_nothing": "UPDATE audit SET organisation = 99",
    "database_damaged": "UPDATE conversations SET contact = 99",
}


_CHANNEL = (
    "INSERT INTO channels (rowid, id, project, type, name, enabled, origins, identity_mode, public_keys, "
    "visitors_allowed, ask, look, native, sealed_secret, secret_tail, created_at, updated_at) "
    "VALUES (1, 'chn_1', {project}, 'widget', 'Shop', 1, '[]', 'optional', '[]', 1, '[]', '{{}}', 0, x'', '', 0, 0)"
)
_SESSION = (
    "INSERT INTO contact_sessions (id, contact, channel, hash, verified, created_at, last_used_at, expires_at) "
    "VALUES ('cse_1', {contact}, 1, x'00', 0, 0, 0, 9)"
)
BROKEN |= {
    "session_of_nothing": f"{_CHANNEL.format(project=1)}; {_SESSION.format(contact='NULL')}",
    "session_elsewhere": "INSERT INTO projects (rowid, id, organisation, name, stream_key, created_at) "
    f"SELECT 9, 'prj_9', organisation, 'Other', 'other', 0 FROM projects LIMIT 1; {_CHANNEL.format(project=9)}; "
    f"{_SESSION.format(contact=1)}",
    "client_id_elsewhere": "INSERT INTO contacts (rowid, id, project, user_id, created_at, updated_at) "
    "VALUES (9, 'con_9', 1, 'u9', 0, 0); INSERT INTO conversation_client_ids VALUES (9, 'draft-1', 1)",
    "client_ids_differ": "INSERT INTO conversation_client_ids SELECT contact, 'draft-1', rowid FROM conversations",
    "client_id_of_nothing": "UPDATE conversations SET client_id = 'draft-1'",
    "client_id_repeated": "DROP INDEX messages_by_client_id; UPDATE messages SET client_id = 'draft-1'",
    "received_ahead": "UPDATE conversations SET contact_reached_index = messages",
    "link_of_nothing": "UPDATE one_time_links SET invitation = NULL",
    "link_ahead": """UPDATE one_time_links SET generation = 99 WHERE purpose = 'password'""",
    "link_outlives_invitation": "UPDATE invitations SET expires_at = 9",
    "invitation_of_no_role": "UPDATE invitations SET role = 'rol_1'",
    "mail_of_nothing": "UPDATE mails SET sealed = NULL",
    "mail_not_emptied": "UPDATE mails SET status = 'sent'",
}


@pytest.mark.parametrize("code", BROKEN)
def test_each_kind_of_problem_is_found(data: Path, code: str) -> None:
    change(data, *BROKEN[code].split("; "))
    assert code in codes(data)


TAGGED_ALIKE = (
    """UPDATE conversations SET tags = '["\u00e4rger"]'""",
    *(
        f"INSERT INTO {holder}_tags (project, folded, {holder}, tag) SELECT 1, 'arger', rowid, '\u00e4rger' FROM conversations"
        for holder in ("conversation", "contact", "ticket")
    ),
)
"""Adds a tag to a conversation, a contact and a ticket, each under its key."""


@pytest.mark.parametrize("holder", ["conversation", "contact", "ticket"])
def test_a_tag_under_another_key_than_its_own_is_found(data: Path, holder: str) -> None:
    change(data, *TAGGED_ALIKE)
    assert "tags_differ" not in codes(data)
    change(data, f"UPDATE {holder}_tags SET folded = '\u00e4rger'")
    problems = check(data, Secrets(SECRET), contents=True, settled_s=0).problems
    assert [each.message for each in problems if each.code == "tags_differ"] == [
        f"A {holder} (row 1) has the tag \u00e4rger, and is found by \u00e4rger."
    ]


def test_an_event_that_its_project_does_not_find_is_named(data: Path) -> None:
    change(data, "UPDATE events SET position = 64 WHERE position = (SELECT max(position) FROM events)")
    assert "events_of_project" in codes(data)


def test_every_rule_is_tried_above() -> None:
    assert {rule.code for rule in RULES} <= BROKEN.keys()


def test_all_problems_are_named_together(data: Path) -> None:
    change(data, BROKEN["sequence_hole"], BROKEN["upload_usage"])
    DiskFiles(data).place(CONTENT).unlink()
    assert codes(data, None) >= {"sequence_hole", "upload_usage", "upload_file", "secret_missing"}


def test_events_that_were_pruned_leave_no_hole(data: Path) -> None:
    change(
        data,
        BROKEN["sequence_start"],
        "DELETE FROM deliveries",
        "UPDATE event_window SET pruned_id = 'evt_0'",
    )
    assert codes(data) == set()


def test_a_file_that_is_missing_shorter_or_altered_is_named(data: Path) -> None:
    path = DiskFiles(data).place(CONTENT)
    path.write_bytes(bytes(len(FILE)))
    assert (codes(data, contents=False), codes(data)) == (set(), {"upload_file"})
    path.write_bytes(FILE[:-1])
    assert codes(data, contents=False) == {"upload_file"}
    path.unlink()
    assert codes(data, contents=False) == {"upload_file"}


def test_file_without_upload_is_named_unless_new_or_being_removed(data: Path) -> None:
    stranger = data / "uploads" / "1" / "aa" / ("a" * 64)
    stranger.parent.mkdir()
    stranger.write_bytes(b"x")
    assert check(data, Secrets(SECRET), contents=False).problems == []
    assert codes(data) == {"file_without_upload"}
    change(data, f"INSERT INTO doomed_files (project, sha256) VALUES (1, '{'a' * 64}')")
    assert codes(data) == set()


def test_another_secret_does_not_open_what_was_sealed(data: Path) -> None:
    assert codes(data, "another secret that is long enough, too") == {"secret_wrong"}


def test_a_damaged_file_is_a_problem_and_not_a_crash(data: Path) -> None:
    size = (data / FILE_NAME).stat().st_size
    with (data / FILE_NAME).open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (size // 2))
    assert codes(data) == {"database_damaged"}
    (data / FILE_NAME).write_bytes(b"no database at all" * 1_000)
    assert codes(data) == {"database_damaged"}


def test_value_that_its_column_forbids_is_damage(data: Path) -> None:
    change(data, "PRAGMA ignore_check_constraints = ON", "UPDATE projects SET setup_hidden = 2")
    assert codes(data) == {"database_damaged"}


def test_a_database_before_its_upgrade_is_noted(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("deskwire.storage.sqlite.check.pending_migrations", lambda _: ["m9999_next"])
    report = check(data, Secrets(SECRET), contents=False)
    assert report.problems == []
    assert "m9999_next" in report.notes[0]


def test_a_directory_without_database_or_of_a_newer_program_is_refused(data: Path, tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryError, match="no Deskwire"):
        check(tmp_path / "nothing", None, contents=False)
    change(data, "INSERT INTO _sqlite_migrations VALUES (99, 'deskwire', 'm9999_future', '', '9.9.0')")
    with pytest.raises(DataDirectoryError, match="m9999_future"):
        check(data, Secrets(SECRET), contents=False)


def test_a_check_changes_nothing(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "before")
    codes(data)
    for path in (tmp_path / "before").rglob("*"):
        assert (
            path.is_dir() or path.read_bytes() == (data / path.relative_to(tmp_path / "before")).read_bytes()
        )
