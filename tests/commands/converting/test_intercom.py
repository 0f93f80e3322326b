"""Exports of Intercom become lines of an import."""

from __future__ import annotations

from typing import Any

import pytest

from deskwire.commands.convert.intercom import Intercom
from tests.commands.converting.converted import converted
from tests.commands.converting.shapes import ADA, FIN, GRACE, T, intercom_conversation, intercom_part


def test_a_conversation_becomes_one_with_its_parts() -> None:
    done = converted(
        "intercom", intercom_conversation(), {"type": "team", "id": "5017691", "name": "Shipping"}
    )
    assert done.conversations == [
        {
            "type": "conversation",
            "externalId": "intercom-471",
            "contact": {"userId": "u1", "name": "Ada Lovelace", "email": "ada@example.org"},
            "title": "Where is my order?",
            "status": "CLOSED",
            "createdAt": "2024-03-01T09:00:00.000Z",
            "updatedAt": "2024-03-01T10:00:00.000Z",
            "closedAt": "2024-03-01T09:50:00.000Z",
            "rating": 10,
            "ratedAt": "2024-03-01T09:55:00.000Z",
            "ratingComment": "Quick!",
            "attributes": {
                "order": "A-1001",
                "Copilot used": False,
                "source": "intercom",
                "intercomConversation": "471",
                "tags": ["delivery"],
                "priority": True,
                "channel": "email",
                "url": "https://shop.example/orders",
                "team": "Shipping",
                "assignee": "Grace Hopper",
            },
            "attributeIds": {"team": "team 5017691", "assignee": "admin 991267"},
        }
    ]
    assert done.said == [
        ("contact", "Where is order A-1001?"),
        ("bot Fin", "A human will be with you."),
        ("agent Grace Hopper", "It is in Leipzig."),
        ("agent Grace Hopper", "It left us today."),
    ]
    assert [each.get("internal", False) for each in done.messages] == [False, False, True, False]
    assert [each["externalId"] for each in done.messages] == ["source-471", "2", "3", "4"]
    assert done.notes == {"step": 2}


def test_campaign_message_begins_with_its_agent_and_belongs_to_the_contact() -> None:
    source = {"type": "push", "id": "1", "body": "<p>Can we help?</p>", "author": GRACE}
    done = converted("intercom", intercom_conversation(source=source, state="snoozed"))
    assert done.said[0] == ("agent Grace Hopper", "Can we help?")
    assert done.conversations[0]["status"] == "PENDING"
    assert done.conversations[0]["contact"] == {"userId": "u1"}


def test_text_of_an_assignment_is_internal_and_text_of_a_closing_public() -> None:
    parts = [
        intercom_part(1, "assignment", GRACE, "<p>Please look.</p>", T + 1),
        intercom_part(2, "close", GRACE, "<p>Bye!</p>", T + 2),
        intercom_part(3, "comment", {**GRACE, "from_ai_agent": True}, "<p>Automatic.</p>", T + 3),
    ]
    done = converted("intercom", intercom_conversation(conversation_parts={"conversation_parts": parts}))
    assert [each.get("internal", False) for each in done.messages[1:]] == [True, False, False]
    assert done.said[3] == ("bot Grace Hopper", "Automatic.")


def test_listed_conversation_lacks_its_parts_and_is_reported() -> None:
    listed, cut = intercom_conversation("1"), intercom_conversation("2")
    del listed["conversation_parts"]
    cut["conversation_parts"]["total_count"] = 900
    done = converted("intercom", {"type": "conversation.list", "conversations": [listed, cut], "pages": {}})
    assert len(done.conversations) == 2
    assert [each for each in done.told if each["reason"] == "parts_missing"] == [
        {"reason": "parts_missing", "about": "conversation 1"},
        {"reason": "parts_missing", "about": "conversation 2"},
    ]


def test_names_of_contacts_may_come_from_a_separate_list() -> None:
    conversation = intercom_conversation(source={"type": "push", "body": "<p>Hi</p>", "author": FIN})
    contact = {
        "type": "contact",
        "id": ADA["id"],
        "role": "user",
        "name": "Ada King",
        "phone": "+49301234",
        "created_at": T,
    }
    done = converted("intercom", conversation, {"type": "list", "data": [contact], "total_count": 1})
    assert done.conversations[0]["contact"] == {
        "userId": "u1",
        "name": "Ada King",
        "phone": "+49301234",
        "createdAt": "2024-03-01T09:00:00.000Z",
    }


def test_further_customers_redacted_parts_and_attachments_are_reported() -> None:
    bob = {"type": "lead", "id": "bob", "name": None, "email": "bob@example.org"}
    file = {"type": "upload", "name": "a.png", "url": "https://downloads.intercomcdn.com/a.png"}
    parts = [
        intercom_part(1, "comment", bob, "<p>Me too</p>", T + 1, attachments=[file]),
        intercom_part(2, "comment", ADA, None, T + 2, redacted=True),
    ]
    done = converted(
        "intercom",
        intercom_conversation(conversation_parts={"conversation_parts": parts, "total_count": 2}),
        {"type": "ticket", "id": "9"},
    )
    link = "[attachment: a.png] https://downloads.intercomcdn.com/a.png"
    assert done.said[1] == ("contact", f"bob@example.org wrote:\nMe too\n{link}")
    assert done.notes == {"redacted": 1, "not_imported": 1, "other_person": 1, "links": 1}


def test_custom_field_with_a_name_of_the_converter_is_kept_beside_it() -> None:
    done = converted("intercom", intercom_conversation(custom_attributes={"url": "mine", "size": 3}))
    attributes = done.conversations[0]["attributes"]
    assert (attributes["url"], attributes["custom url"], attributes["size"]) == (
        "https://shop.example/orders",
        "mine",
        3,
    )


TEXT = "Hello,\n\nif a<b and c>d:\n    go()\n\nSee <https://example.org/o/1>.\nAda <ada@example.org>"


@pytest.mark.parametrize("place", ["conversation", "source and part", "page", "option"])
def test_declared_plain_text_is_converted_unchanged(place: str) -> None:
    shown = {"display_as": "plaintext"}
    near, far = (shown if place == each else {} for each in ("source and part", "conversation"))
    source = {"type": "email", "subject": "a<b", "body": TEXT, "author": ADA, **near}
    parts = [intercom_part(1, "comment", ADA, TEXT, T + 1, **near)]
    record: dict[str, Any] = intercom_conversation(
        source=source, conversation_parts={"conversation_parts": parts}, **far
    )
    if place == "page":
        record = {"type": "conversation.list", "conversations": [record], **shown}
    done = converted("intercom", record, reader=Intercom(plain_text=True) if place == "option" else None)
    assert done.said == [("contact", TEXT)] * 2
    assert done.conversations[0]["title"] == "a<b"


def test_html_is_read_as_html_however_it_looks() -> None:
    parts = [intercom_part(1, "comment", ADA, "a &lt; b\nand so on", T + 1)]
    done = converted("intercom", intercom_conversation(conversation_parts={"conversation_parts": parts}))
    assert done.said[1] == ("contact", "a < b and so on")
