"""Records in the shapes that the documentation of the three products shows."""

from __future__ import annotations

from typing import Any

ZENDESK_USERS: list[dict[str, Any]] = [
    {
        "id": 20978392,
        "url": "https://shop.zendesk.com/api/v2/users/20978392.json",
        "name": "Ada Lovelace",
        "email": "ada@example.org",
        "created_at": "2023-06-01T08:00:00Z",
        "time_zone": "Berlin",
        "phone": "+49 30 1234",
        "photo": {"content_url": "https://shop.zendesk.com/photos/ada.png"},
        "role": "end-user",
        "external_id": "u1",
        "active": True,
    },
    {
        "id": 235323,
        "name": "Grace Hopper",
        "email": "grace@shop.example",
        "role": "agent",
        "external_id": None,
    },
    {"id": 35334, "name": "Bob", "email": "bob@example.org", "role": "end-user", "external_id": None},
]


def zendesk_ticket(number: int = 35436, **fields: Any) -> dict[str, Any]:
    """A ticket as the reference of Tickets shows it, with its comments as the JSON export has them."""
    return {
        "id": number,
        "url": f"https://shop.zendesk.com/api/v2/tickets/{number}.json",
        "external_id": "ahg35h3jh",
        "created_at": "2024-03-01T09:00:00Z",
        "updated_at": "2024-03-02T10:00:00Z",
        "type": "incident",
        "subject": "Where is my order?",
        "raw_subject": "{{dc.order}}",
        "description": "Where is order A-1001?",
        "priority": "high",
        "status": "solved",
        "requester_id": 20978392,
        "submitter_id": 20978392,
        "assignee_id": 235323,
        "group_id": 98738,
        "tags": ["delivery", "vip"],
        "via": {"channel": "web"},
        "custom_fields": [{"id": 27642, "value": "A-1001"}, {"id": 27648, "value": None}],
        "satisfaction_rating": {"id": 1234, "score": "good", "comment": "Great support!"},
        "comments": [
            zendesk_comment(1, 20978392, "<p>Where is order <b>A-1001</b>?</p>", 0),
            zendesk_comment(2, 235323, "<p>I look it up.</p>", 5, public=False),
            zendesk_comment(3, 235323, "<div>It left us today.<br>Grace</div>", 20),
        ],
        **fields,
    }


def zendesk_comment(
    number: int, author: int, markup: str | None, minute: int, **fields: Any
) -> dict[str, Any]:
    """A comment as the reference of Ticket Comments shows it."""
    return {
        "id": number,
        "type": "Comment",
        "author_id": author,
        "body": "the same without markup",
        "html_body": markup,
        "plain_body": "the same without markup",
        "public": True,
        "attachments": [],
        "audit_id": number * 10,
        "via": {"channel": "web"},
        "created_at": f"2024-03-01T09:{minute:02}:00Z",
        **fields,
    }


def intercom_part(
    number: int, kind: str, author: dict[str, Any], body: str | None, at: int, **fields: Any
) -> dict[str, Any]:
    """A part of a conversation as the reference shows it."""
    return {
        "type": "conversation_part",
        "id": str(number),
        "part_type": kind,
        "body": body,
        "created_at": at,
        "updated_at": at,
        "notified_at": at,
        "assigned_to": None,
        "author": author,
        "attachments": [],
        "external_id": None,
        "redacted": False,
        **fields,
    }


ADA = {"type": "user", "id": "6762f0dd1bb69f9f2193bb83", "name": "Ada Lovelace", "email": "ada@example.org"}
GRACE = {"type": "admin", "id": "991267", "name": "Grace Hopper", "email": "grace@shop.example"}
FIN = {"type": "bot", "id": "991266", "name": "Fin", "email": "operator@intercom.io"}
T = 1709283600
"""2024-03-01T09:00:00Z."""


def intercom_conversation(number: str = "471", **fields: Any) -> dict[str, Any]:
    """A conversation as `GET /conversations/{id}` gives it."""
    return {
        "type": "conversation",
        "id": number,
        "created_at": T,
        "updated_at": T + 3600,
        "waiting_since": None,
        "snoozed_until": None,
        "source": {
            "type": "email",
            "id": "403918320",
            "delivered_as": "customer_initiated",
            "subject": "<p>Where is my order?</p>",
            "body": "<p>Where is order A-1001?</p>",
            "author": ADA,
            "attachments": [],
            "url": "https://shop.example/orders",
            "redacted": False,
        },
        "contacts": {
            "type": "contact.list",
            "contacts": [{"type": "contact", "id": ADA["id"], "external_id": "u1"}],
        },
        "admin_assignee_id": 991267,
        "team_assignee_id": 5017691,
        "custom_attributes": {"order": "A-1001", "Copilot used": False},
        "open": False,
        "state": "closed",
        "read": True,
        "tags": {"type": "tag.list", "tags": [{"type": "tag", "id": "17", "name": "delivery"}]},
        "priority": "priority",
        "statistics": {"type": "conversation_statistics", "last_close_at": T + 3000},
        "conversation_rating": {"rating": 5, "remark": "Quick!", "created_at": T + 3300},
        "conversation_parts": {
            "type": "conversation_part.list",
            "conversation_parts": [
                intercom_part(1, "assignment", FIN, None, T + 10),
                intercom_part(2, "comment", FIN, "<p>A human will be with you.</p>", T + 20),
                intercom_part(3, "note", GRACE, "<p>It is in <b>Leipzig</b>.</p>", T + 600),
                intercom_part(4, "comment", GRACE, "<p>It left us today.</p>", T + 1200),
                intercom_part(5, "close", GRACE, None, T + 3000),
            ],
            "total_count": 5,
        },
        **fields,
    }


SENDER = {
    "additional_attributes": {},
    "availability_status": "offline",
    "email": "ada@example.org",
    "id": 12,
    "name": "Ada Lovelace",
    "phone_number": "+49301234",
    "identifier": "u1",
    "thumbnail": "",
    "custom_attributes": {},
    "created_at": T - 1000,
}


def chatwoot_message(number: int, kind: int, content: str | None, at: int, **fields: Any) -> dict[str, Any]:
    """A message as `GET …/conversations/{id}/messages` gives it."""
    return {
        "id": number,
        "content": content,
        "inbox_id": 3,
        "conversation_id": 7,
        "message_type": kind,
        "content_type": "text",
        "status": "sent",
        "content_attributes": {},
        "created_at": at,
        "private": False,
        "source_id": None,
        **fields,
    }


def chatwoot_conversation(number: int = 7, **fields: Any) -> dict[str, Any]:
    """A conversation as `GET …/conversations` gives it, with its last message alone."""
    agent = {
        "id": 5,
        "name": "Grace Hopper",
        "email": "grace@shop.example",
        "role": "agent",
        "availability_status": "online",
    }
    return {
        "meta": {
            "sender": SENDER,
            "channel": "Channel::WebWidget",
            "assignee": agent,
            "hmac_verified": False,
        },
        "id": number,
        "messages": [],
        "account_id": 1,
        "uuid": "7d0e7a0e-0000-4000-8000-000000000007",
        "additional_attributes": {"mail_subject": "Where is my order?"},
        "custom_attributes": {"order": "A-1001"},
        "inbox_id": 3,
        "labels": ["delivery"],
        "status": "resolved",
        "created_at": T,
        "timestamp": T + 3000,
        "last_activity_at": T + 3000,
        "priority": "high",
        **fields,
    }


def chatwoot_messages() -> dict[str, Any]:
    """The messages of that conversation, as a page of the API."""
    person = {"id": 5, "name": "Grace Hopper", "type": "user"}
    return {
        "meta": {"labels": ["delivery"], "contact": {"payload": SENDER}},
        "payload": [
            chatwoot_message(1, 0, "Where is order A-1001?", T, sender={**SENDER, "type": "contact"}),
            chatwoot_message(2, 3, "We answer in an hour.", T + 1),
            chatwoot_message(3, 2, "Assigned to Grace Hopper by Robin", T + 10),
            chatwoot_message(4, 1, "It is in Leipzig.", T + 600, sender=person, private=True),
            chatwoot_message(5, 1, "It left us today, price < 5 & > 3.", T + 1200, sender=person),
        ],
    }


def chatwoot_rows() -> list[dict[str, Any]]:
    """The same conversation as rows of the database, where it has another number."""
    at = "2024-03-01T09:{}:00".format
    rows: list[tuple[str, dict[str, Any]]] = [
        (
            "contacts",
            {
                "id": 12,
                "name": "Ada Lovelace",
                "email": "ada@example.org",
                "identifier": "u1",
                "phone_number": None,
            },
        ),
        ("users", {"id": 5, "name": "Grace Hopper"}),
        ("inboxes", {"id": 3, "name": "Website"}),
        (
            "conversations",
            {
                "id": 9001,
                "display_id": 7,
                "account_id": 1,
                "inbox_id": 3,
                "status": 1,
                "assignee_id": 5,
                "contact_id": 12,
                "created_at": at("00"),
                "last_activity_at": at("50"),
                "additional_attributes": {"mail_subject": "Where is my order?"},
                "custom_attributes": {"order": "A-1001"},
                "cached_label_list": "delivery, vip",
                "priority": 2,
                "team_id": None,
            },
        ),
        ("messages", _row(1, 0, "Where is order A-1001?", at("00"), "Contact", 12)),
        ("messages", _row(2, 2, "Assigned to Grace Hopper by Robin", at("01"), None, None)),
        ("messages", _row(3, 1, "Gone", at("02"), "User", 5, content_attributes='{"deleted": true}')),
        ("messages", _row(4, 1, "It is in Leipzig.", at("10"), "User", 5, private=True)),
        ("messages", _row(5, 1, "It left us today.", at("20"), "User", 5)),
        ("attachments", {"id": 1, "message_id": 5, "file_type": 0, "external_url": None}),
        (
            "csat_survey_responses",
            {
                "id": 1,
                "conversation_id": 9001,
                "rating": 4,
                "feedback_message": "Quick!",
                "created_at": at("55"),
            },
        ),
    ]
    return [{"table": table, **row} for table, row in rows]


def _row(
    number: int, kind: int, content: str, at: str, sender: str | None, sender_id: int | None, **fields: Any
) -> dict[str, Any]:
    given = {"id": number, "content": content, "account_id": 1, "inbox_id": 3, "conversation_id": 9001}
    return {
        **given,
        "message_type": kind,
        "created_at": at,
        "private": False,
        "content_type": 0,
        "sender_type": sender,
        "sender_id": sender_id,
        "content_attributes": "{}",
        **fields,
    }
