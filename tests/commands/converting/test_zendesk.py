"""Exports of Zendesk become lines of an import."""

from __future__ import annotations

from tests.commands.converting.converted import converted
from tests.commands.converting.shapes import ZENDESK_USERS, zendesk_comment, zendesk_ticket


def test_a_ticket_of_the_json_export_becomes_a_conversation_with_its_comments() -> None:
    done = converted("zendesk", zendesk_ticket(), *ZENDESK_USERS)
    assert done.conversations == [
        {
            "type": "conversation",
            "externalId": "zendesk-35436",
            "contact": {
                "userId": "u1",
                "name": "Ada Lovelace",
                "email": "ada@example.org",
                "phone": "+49 30 1234",
                "avatar": "https://shop.zendesk.com/photos/ada.png",
                "createdAt": "2023-06-01T08:00:00.000Z",
            },
            "title": "Where is my order?",
            "status": "CLOSED",
            "createdAt": "2024-03-01T09:00:00.000Z",
            "updatedAt": "2024-03-02T10:00:00.000Z",
            "closedAt": "2024-03-02T10:00:00.000Z",
            "rating": 10,
            "ratingComment": "Great support!",
            "attributes": {
                "source": "zendesk",
                "zendeskTicket": "35436",
                "tags": ["delivery", "vip"],
                "priority": "high",
                "type": "incident",
                "channel": "web",
                "group": "group 98738",
                "externalId": "ahg35h3jh",
                "field 27642": "A-1001",
                "assignee": "Grace Hopper",
            },
            "attributeIds": {"assignee": "235323"},
        }
    ]
    assert done.said == [
        ("contact", "Where is order A-1001?"),
        ("agent Grace Hopper", "I look it up."),
        ("agent Grace Hopper", "It left us today.\nGrace"),
    ]
    assert [each.get("internal", False) for each in done.messages] == [False, True, False]
    assert [each["externalId"] for each in done.messages] == ["1", "2", "3"]
    assert done.messages[2]["createdAt"] == "2024-03-01T09:20:00.000Z"
    assert done.notes == {}


def test_pages_of_the_api_give_the_same_lines_as_the_json_export() -> None:
    ticket = zendesk_ticket()
    comments = ticket.pop("comments")
    events = [
        {
            "id": 7000 + each["id"],
            "ticket_id": 35436,
            "timestamp": 1709283600,
            "created_at": each.pop("created_at"),
            "updater_id": each["author_id"],
            "event_type": "Audit",
            "child_events": [
                {**each, "event_type": "Comment"},
                {"id": 1, "event_type": "Change", "status": "open"},
            ],
        }
        for each in comments
    ]
    done = converted(
        "zendesk",
        {"users": ZENDESK_USERS, "count": 3, "end_of_stream": True},
        {"ticket_events": events, "count": 3},
        {"tickets": [ticket], "after_url": None, "end_of_stream": True},
    )
    assert done.notes == {"step": 3}
    assert done.output == converted("zendesk", *ZENDESK_USERS, zendesk_ticket()).output


def test_ticket_on_two_pages_has_its_last_version() -> None:
    before, after = zendesk_ticket(status="open", comments=[]), zendesk_ticket(status="hold")
    done = converted("zendesk", {"tickets": [before]}, {"tickets": [after]}, {"users": ZENDESK_USERS})
    assert [each["status"] for each in done.conversations] == ["PENDING"]
    assert "closedAt" not in done.conversations[0]
    assert len(done.messages) == 3


def test_without_comments_the_description_is_the_first_message() -> None:
    done = converted("zendesk", zendesk_ticket(comments=[], description="x < y & <Enter>"), *ZENDESK_USERS)
    assert done.said == [("contact", "x < y & <Enter>")]


def test_fields_and_groups_are_shown_by_their_names() -> None:
    fields = {"ticket_fields": [{"id": 27642, "title": "Order number"}]}
    done = converted("zendesk", zendesk_ticket(), fields, {"groups": [{"id": 98738, "name": "Shipping"}]})
    attributes = done.conversations[0]["attributes"]
    assert attributes["Order number"] == "A-1001"
    assert attributes["group"] == "Shipping"


def test_attachments_become_links_and_those_without_an_address_are_counted() -> None:
    files = [
        {
            "id": 498483,
            "file_name": "crash.log",
            "content_url": "https://shop.zendesk.com/attachments/crash.log",
        },
        {"id": 498484, "file_name": "lost.png", "content_url": None},
    ]
    comment = zendesk_comment(1, 20978392, "<p>See the log.</p>", 0, attachments=files)
    done = converted("zendesk", zendesk_ticket(comments=[comment]), *ZENDESK_USERS)
    link = "[attachment: crash.log] https://shop.zendesk.com/attachments/crash.log"
    assert done.said == [("contact", f"See the log.\n{link}")]
    assert done.notes == {"links": 1, "no_link": 1}


def test_unknown_people_and_further_customers_are_reported() -> None:
    comments = [zendesk_comment(1, 35334, "<p>Me too</p>", 0), zendesk_comment(2, 999, "<p>Hello</p>", 1)]
    done = converted("zendesk", zendesk_ticket(comments=comments), ZENDESK_USERS[2])
    assert done.said == [("contact", "Bob wrote:\nMe too"), ("agent", "Hello")]
    assert done.conversations[0]["contact"] == {"userId": "zendesk-20978392"}
    assert done.notes == {"unknown_contact": 1, "other_person": 1, "unknown_author": 1}


def test_unimportable_parts_are_counted_with_their_reason() -> None:
    done = converted(
        "zendesk",
        zendesk_ticket(1, status="deleted"),
        {**zendesk_comment(8, 20978392, "<p>Lost</p>", 0), "ticket_id": 404},
        {"organizations": [{"id": 1, "name": "Analytical Engines"}]},
        {"id": 5, "colour": "blue"},
        zendesk_ticket(
            2, comments=[zendesk_comment(1, -1, "", 0, body="", plain_body="")], requester_id=35334
        ),
        ZENDESK_USERS[2],
    )
    assert [each["externalId"] for each in done.conversations] == ["zendesk-2"]
    assert done.deletions == [{"type": "deletion", "conversation": "zendesk-1"}]
    assert done.told == [
        {"reason": "not_imported", "about": "1"},
        {"reason": "unknown", "about": "5: id, colour"},
        {"reason": "no_id", "about": "zendesk-35334"},
        {"reason": "no_text", "about": "message 1"},
        {"reason": "deleted", "about": "conversation 1"},
        {"reason": "no_thread", "about": "message 8"},
    ]


def test_customers_without_an_external_id_are_identified_by_address_on_request() -> None:
    ticket = zendesk_ticket(requester_id=35334)
    assert (
        converted("zendesk", ticket, *ZENDESK_USERS).conversations[0]["contact"]["userId"] == "zendesk-35334"
    )
    done = converted("zendesk", ticket, *ZENDESK_USERS, by_email=True)
    assert done.conversations[0]["contact"]["userId"] == "bob@example.org"
    assert done.notes.get("no_id") is None


def test_the_body_is_plain_text_and_the_html_body_is_markup() -> None:
    body = "Hello,\n\n    if a<b and c>d:\n\nAda <ada@example.org>"
    markup = "<div class='zd-comment'><pre>    if a&lt;b:\n        go()</pre></div>"
    comments = [
        zendesk_comment(1, 20978392, None, 0, body=body),
        zendesk_comment(2, 20978392, markup, 1),
    ]
    done = converted("zendesk", zendesk_ticket(comments=comments), *ZENDESK_USERS)
    assert [text for _, text in done.said] == [body, "    if a<b:\n        go()"]
    described = converted("zendesk", zendesk_ticket(comments=[], description=body), *ZENDESK_USERS)
    assert described.said == [("contact", body)]
