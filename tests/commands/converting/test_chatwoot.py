"""Exports of Chatwoot become lines of an import."""

from __future__ import annotations

from tests.commands.converting.converted import converted
from tests.commands.converting.shapes import (
    SENDER,
    T,
    chatwoot_conversation,
    chatwoot_message,
    chatwoot_messages,
    chatwoot_rows,
)


def test_pages_of_the_api_become_a_conversation_with_its_messages() -> None:
    done = converted(
        "chatwoot", {"data": {"meta": {}, "payload": [chatwoot_conversation()]}}, chatwoot_messages()
    )
    assert done.conversations == [
        {
            "type": "conversation",
            "externalId": "chatwoot-7",
            "contact": {
                "userId": "u1",
                "name": "Ada Lovelace",
                "email": "ada@example.org",
                "phone": "+49301234",
                "createdAt": "2024-03-01T08:43:20.000Z",
            },
            "title": "Where is my order?",
            "status": "CLOSED",
            "createdAt": "2024-03-01T09:00:00.000Z",
            "updatedAt": "2024-03-01T09:50:00.000Z",
            "closedAt": "2024-03-01T09:50:00.000Z",
            "attributes": {
                "order": "A-1001",
                "source": "chatwoot",
                "chatwootConversation": "7",
                "tags": ["delivery"],
                "priority": "high",
                "channel": "Channel::WebWidget",
                "inbox": "inbox 3",
                "assignee": "Grace Hopper",
            },
            "attributeIds": {"assignee": "agent 5"},
        }
    ]
    assert done.said == [
        ("contact", "Where is order A-1001?"),
        ("bot", "We answer in an hour."),
        ("agent Grace Hopper", "It is in Leipzig."),
        ("agent Grace Hopper", "It left us today, price < 5 & > 3."),
    ]
    assert [each.get("internal", False) for each in done.messages] == [False, False, True, False]
    assert done.notes == {"step": 1}


def test_database_rows_become_the_same_conversation_with_any_row_number() -> None:
    done = converted("chatwoot", *reversed(chatwoot_rows()))
    [conversation] = done.conversations
    assert conversation["externalId"] == "chatwoot-7"
    assert conversation["contact"]["userId"] == "u1"
    assert (conversation["rating"], conversation["ratingComment"]) == (8, "Quick!")
    assert conversation["attributes"]["tags"] == ["delivery", "vip"]
    assert conversation["attributes"]["inbox"] == "Website"
    assert conversation["attributes"]["assignee"] == "Grace Hopper"
    assert done.said == [
        ("contact", "Where is order A-1001?"),
        ("agent Grace Hopper", "It is in Leipzig."),
        ("agent Grace Hopper", "It left us today."),
    ]
    assert done.messages[2]["createdAt"] == "2024-03-01T09:20:00.000Z"
    assert done.notes == {"no_link": 1, "step": 1, "deleted": 1}


def test_attachments_bots_and_markup_of_mails_are_carried_over() -> None:
    picture = {"id": 1, "file_type": "image", "data_url": "https://chat.example/rails/a.png", "file_size": 5}
    bot = {"id": 5, "name": "Robin", "type": "agent_bot"}
    done = converted(
        "chatwoot",
        chatwoot_conversation(),
        chatwoot_message(1, 0, None, T, sender={**SENDER, "type": "contact"}, attachments=[picture]),
        chatwoot_message(2, 1, "Hello, I am a bot.", T + 1, sender=bot),
        chatwoot_message(3, 0, "<p>By <b>mail</b></p>", T + 2, content_type="incoming_email"),
        chatwoot_message(4, 1, "", T + 3, sender={"id": 6, "name": "Ken", "type": "user"}),
        {"table": "notes", "id": 1},
        {"what": "ever"},
    )
    assert done.said == [
        ("contact", "[attachment: image] https://chat.example/rails/a.png"),
        ("bot Robin", "Hello, I am a bot."),
        ("contact", "<p>By <b>mail</b></p>"),
    ]
    assert done.notes == {"not_imported": 1, "unknown": 1, "links": 1, "no_text": 1}


MAIL = "Hello,\n\nmy order A-1 is late.\nSee <https://example.org/o/1>.\n\n    if a<b and c>d:\n\nAda <ada@example.org>"


def test_text_of_a_mail_is_converted_unchanged() -> None:
    for kind in ("incoming_email", 8, "text", 0, None):
        done = converted(
            "chatwoot", chatwoot_conversation(), chatwoot_message(1, 0, MAIL, T, content_type=kind)
        )
        assert done.said == [("contact", MAIL)]
    code = "    def f():\n        pass"
    assert converted("chatwoot", chatwoot_conversation(), chatwoot_message(1, 0, code, T)).said[0][1] == code
