"""Each SQL fragment in which the dialects differ gives the same, known answer on both stores."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from deskwire.engine.accounts.people import ProjectSettings
from deskwire.engine.accounts.teams import Team
from deskwire.engine.contacts.contact import Contact
from deskwire.engine.conversations.conversation import Author, Conversation, Message
from deskwire.engine.conversations.listing import ConversationFilter, ConversationSort
from deskwire.engine.core.ids import new_id
from deskwire.engine.events.types import EventDraft, Topic
from deskwire.engine.idempotency.idempotent_requests import StoredResponse
from deskwire.engine.importing.ports import ConversationMark, MessageMark
from deskwire.engine.surveys.survey import Survey
from deskwire.engine.translations.translation import EntryFilter, EntryRef, Translation
from deskwire.storage.dialect import POSTGRES, SQLITE
from tests.support.builders import CONTACT, NOON, OTHER_PROJECT, PROJECT

ODD = (
    "before\0after",
    "\0",
    "\ue000",
    "\ue0000",
    "\ue000\ue000\0",
    "a\ue000",
    "\U0010ffff",
    "é e\u0301",
    "'\"\\%_{}",
)
"""Texts that one of the two databases would misinterpret."""
LISTED = tuple(text for text in ODD if "\0" not in text)
"""The texts that SQLite finds in a list: its JSON ends a text at U+0000."""


def test_texts_come_back_as_they_were_sent(tx: Any) -> None:
    for number, text in enumerate(ODD):
        made = tx.insert_contact(
            PROJECT.rowid, Contact(0, f"con_{number}", text, NOON, NOON, text, text, text, text)
        )
        assert tx.contact(PROJECT.rowid, text) == made
        assert tx.contact_by_id(PROJECT.rowid, made.id) == made
    found = tx.contacts_of(PROJECT.rowid, [*LISTED, "nobody"])
    assert {key: each.name for key, each in found.items()} == {text: text for text in LISTED}


def test_bytes_numbers_and_nothing_come_back_as_they_were_sent(tx: Any) -> None:
    answer = StoredResponse(bytes(range(256)), b"", None, b"\0", 2**62)
    tx.store_response(answer)
    assert tx.stored_response(answer.name, "") == answer
    settings = ProjectSettings(memory_enabled=False, archived_retention_days=None, upload_quota_bytes=2**53)
    (project,) = [each for each in tx.projects(None, None, 2**62, 10) if each.rowid == PROJECT.rowid]
    tx.save_project(type(project)(*[*_fields(project)[:5], settings, project.created_at]))
    assert tx.project(PROJECT.id).settings == settings


def _fields(project: Any) -> list[Any]:
    return [getattr(project, name) for name in project.__struct_fields__]


def test_a_lone_surrogate_is_refused(tx: Any) -> None:
    with pytest.raises(UnicodeEncodeError):
        tx.insert_contact(PROJECT.rowid, Contact(0, "con_1", "\ud800", NOON, NOON))


def test_texts_are_ordered_by_their_characters(tx: Any) -> None:
    for tags in (("Z", "a c", "a", "ab", "b", "\ue001", "\U00010000"), ("z", "á")):
        tx.put_conversation_tags(tx.insert_conversation(_conversation(tx, tags=tags), CONTACT.rowid, {}))
    counted = [("a", 2), ("a c", 1), ("ab", 1), ("b", 1), ("Z", 2), ("\ue001", 1), ("\U00010000", 1)]
    assert tx.conversation_tags(PROJECT.rowid, "", 10) == counted
    assert tx.conversation_tags(PROJECT.rowid, "Á", 3) == counted[1:4]
    assert tx.conversation_tags(PROJECT.rowid, "Z", 10) == counted[5:]


def test_email_address_is_found_in_any_ascii_case(tx: Any) -> None:
    user = tx.insert_user("usr_1", "Ärzte@Example.org", "A", None, NOON)
    assert tx.user_by_email("ÄRZTE@example.ORG") == user
    assert tx.user_by_email("a\u0308rzte@example.org") == user
    assert tx.user_by_email("arzte@example.org") is None, "it may be a stranger's"
    assert tx.similar_account_exists("arzte@example.org")
    assert tx.user_by_email("_rzte@example.org") is None


def test_team_name_is_taken_regardless_of_case_and_accents(tx: Any) -> None:

    tx.insert_team(Team("team_1", PROJECT.rowid, "Über Uns", NOON, NOON, ()))
    assert tx.team_named(PROJECT.rowid, "ÜBER uns") == "team_1"
    assert tx.team_named(PROJECT.rowid, "uber  Uns") == "team_1"
    assert tx.team_named(OTHER_PROJECT.rowid, "Über Uns") is None


def test_a_survey_is_found_by_a_part_of_its_name(tx: Any) -> None:
    stored = tx.insert_survey(
        Survey(0, "srv_1", PROJECT.rowid, "100% Ärger_x", "OPEN", 1, 0, 0, NOON, NOON), {}
    )
    names = {
        "ärger": True,
        "arger": True,
        "ager": False,
        "RGER_X": True,
        "100%": True,
        "%": True,
        "1%x": False,
        "_": True,
        "R_er": False,
    }
    for part, there in names.items():
        found = tx.surveys(PROJECT.rowid, None, part, None, 10)
        assert [each.id for each in found] == ([stored.id] if there else []), part


def _conversation(tx: Any, **fields: Any) -> Conversation:
    if tx.contact_by_id(PROJECT.rowid, CONTACT.id) is None:
        assert tx.insert_contact(PROJECT.rowid, CONTACT) == CONTACT
    return Conversation(
        id=new_id("cnv", NOON), project=PROJECT.rowid, created_at=NOON, updated_at=NOON, **fields
    )


def test_a_text_is_found_in_conversations_with_its_wildcards_taken_literally(tx: Any) -> None:
    state = tx.insert_conversation(_conversation(tx, title="50%_off! {x} Ärger"), CONTACT.rowid, {})
    wanted = {
        "%_OFF!": True,
        "50%%": False,
        "5_%": False,
        "{X}": True,
        "ärger": True,
        "arger": True,
        "ager": False,
        "RGER": True,
        "!!": False,
    }
    for text, there in wanted.items():
        found = tx.search_conversations(
            PROJECT.rowid, ConversationFilter(text=text), ConversationSort(), None, 10
        )
        assert [each.conversation.id for each in found.listed] == ([state.id] if there else []), text
        assert found.reached is None


def test_list_of_unassigned_conversations_and_without_assignees(tx: Any) -> None:
    state = tx.insert_conversation(_conversation(tx), CONTACT.rowid, {})
    for assignees, count in (((None,), 1), (("usr_1", None), 1), (("usr_1",), 0)):
        wanted = ConversationFilter(assignees=assignees)
        assert tx.count_conversations(PROJECT.rowid, wanted, ConversationSort(), 10) == count
        found = tx.conversations(PROJECT.rowid, wanted, ConversationSort(), None, 10)
        assert [each.conversation.id for each in found] == [state.id] * count


def test_lists_of_keys_may_be_empty_or_long(tx: Any) -> None:
    states = [tx.insert_conversation(_conversation(tx), CONTACT.rowid, {}) for _ in range(3)]
    keys = [state.rowid for state in states]
    assert tx.agent_details([]) == {}
    assert set(tx.agent_details([*keys, 999])) >= set(keys)
    assert tx.seen(1, []) == {}
    assert tx.contacts_of(PROJECT.rowid, []) == {}


def test_imported_rows_are_found_by_their_foreign_names(tx: Any) -> None:
    state = tx.insert_conversation(_conversation(tx), CONTACT.rowid, {})
    names = [*LISTED, "{a,b}", "NULL", "", " "]
    marks = [MessageMark(state.rowid, name, number, f"msg_{number}") for number, name in enumerate(names)]
    tx.insert_imported([], marks, [ConversationMark(PROJECT.rowid, "ours", state.rowid, 7)])
    asked = [(state.rowid, name) for name in names] + [(state.rowid + 1, "NULL"), (state.rowid, "other")]
    assert tx.imported_messages(asked) == {(state.rowid, name): n for n, name in enumerate(names)}
    assert tx.imported_messages([]) == {}
    found = tx.imported_conversations(PROJECT.rowid, ["ours", "theirs"])
    assert {name: each.fingerprint for name, each in found.items()} == {"ours": 7}


def test_an_entrys_languages_are_in_order(tx: Any) -> None:
    for language in ("fr", "de", "pt-BR", "en"):
        tx.put_translation(PROJECT.rowid, EntryRef("article", "one"), Translation(language, {}, NOON))
    (entry,) = tx.entries(PROJECT.rowid, EntryFilter(), None, 10)
    assert list(entry.languages) == ["de", "en", "fr", "pt-BR"]
    assert tx.entries(PROJECT.rowid, EntryFilter(missing="fr"), None, 10) == []


@pytest.mark.parametrize(
    ("snapshot", "count"),
    [({"requests": [1, {"a": "\0"}, []]}, 3), ({"requests": []}, 0), ({"requests": {"a": 1}}, 0), ({"other": "\0"}, 0)],
)  # fmt: skip
def test_requests_of_a_network_log_are_counted(tx: Any, snapshot: Any, count: int) -> None:
    state = tx.insert_conversation(_conversation(tx), CONTACT.rowid, {})
    tx.put_network_logs(state.rowid, orjson.dumps(snapshot), NOON)
    assert tx.network_requests(state.rowid) == (NOON, count)


def test_deletions_are_found_by_object_and_erasures_by_contact(tx: Any) -> None:
    whole = {"conversation": {"id": "cnv_1", "contact": {"userId": "ada\ue000"}}, "reason": "manual"}
    deleted = tx.append_event(PROJECT, EventDraft("conversation.deleted", 3, whole), None, NOON)
    gone = {"contact": {"id": "con_1", "userId": "ada\ue000"}}
    erased = tx.append_event(PROJECT, EventDraft("contact.updated", None, gone), None, NOON)
    tx.append_event(OTHER_PROJECT, EventDraft("contact.updated", None, gone), None, NOON)
    lane = Topic(PROJECT.rowid, "contact", "ada\ue000")
    assert [each.id for each in tx.topic_events(lane, 0, 10, frozenset())] == [deleted.id, erased.id]
    assert [each.id for each in tx.topic_events(lane, deleted.position, 10, frozenset())] == [erased.id]
    lane = Topic(PROJECT.rowid, "conversation", "cnv_1")
    assert [each.id for each in tx.topic_events(lane, 0, 10, frozenset())] == [deleted.id]


def test_a_message_has_its_conversations_project_where_there_is_such_a_column(tx: Any) -> None:
    state = tx.insert_conversation(_conversation(tx), CONTACT.rowid, {})
    message = Message("msg_1", Author("contact"), "x", NOON, False, 0)
    tx.insert_message(state.rowid, message, 1)
    assert list(tx.messages(state.rowid, internal=False, limit=None)) == [message]
    if tx.dialect is POSTGRES:
        assert tx.conn.execute("SELECT project FROM messages").fetchone() == (PROJECT.rowid,)


def test_a_project_is_used_once_something_refers_to_it(tx: Any) -> None:
    assert not tx.project_is_used(PROJECT.rowid)
    tx.insert_contact(PROJECT.rowid, CONTACT)
    assert tx.project_is_used(PROJECT.rowid)
    assert not tx.project_is_used(OTHER_PROJECT.rowid)


def test_hints_are_for_sqlite_alone() -> None:
    hinted = "SELECT 1 FROM t {indexed[t_by_a]} {and_then} u ON {unindexed}t.a = u.a"
    assert SQLITE.text(hinted) == "SELECT 1 FROM t INDEXED BY t_by_a CROSS JOIN u ON +t.a = u.a"
    assert POSTGRES.text(hinted) == "SELECT 1 FROM t  JOIN u ON t.a = u.a"
