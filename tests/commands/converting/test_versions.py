"""The newest version of each record counts, whatever the order of records and whatever files they stand in."""

from __future__ import annotations

import json
from copy import deepcopy
from itertools import permutations
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.commands.converting.converted import Converted, converted, converted_bytes
from tests.commands.converting.shapes import (
    ADA,
    GRACE,
    SENDER,
    ZENDESK_USERS,
    T,
    chatwoot_conversation,
    chatwoot_message,
    intercom_conversation,
    intercom_part,
    zendesk_comment,
    zendesk_ticket,
)
from tests.support.properties import budget

CARD: Final = "my card is 4111"
DELETED: Final = {"content": "This message was deleted", "content_attributes": {"deleted": True}}
HOUR: Final = "2024-03-01T{:02}:00:00Z".format


def at(hour: int) -> int:
    return T + (hour - 9) * 3600


def words(done: Converted) -> str:
    """Everything that was written, as a text."""
    return done.output.decode()


def chatwoot_page(hour: int, *messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    record = chatwoot_conversation(
        messages=list(messages), last_activity_at=at(hour), timestamp=at(hour), **fields
    )
    return {"data": {"payload": [record]}}


def chatwoot_row(hour: int, **fields: Any) -> dict[str, Any]:
    given = {
        "id": 1,
        "conversation_id": 9001,
        "message_type": 0,
        "created_at": HOUR(9),
        "content_attributes": "{}",
    }
    return {"table": "messages", **given, "updated_at": HOUR(hour), **fields}


ROW_OF_CONVERSATION: Final = {
    "table": "conversations",
    "id": 9001,
    "display_id": 7,
    "status": 0,
    "contact_id": 12,
    "created_at": HOUR(9),
    "updated_at": HOUR(9),
}


def intercom(hour: int, *parts: dict[str, Any], **fields: Any) -> dict[str, Any]:
    listed = {"conversation_parts": list(parts), "total_count": len(parts)}
    return intercom_conversation(updated_at=at(hour), conversation_parts=listed, **fields)


def ticket(hour: int, *comments: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return zendesk_ticket(1, updated_at=HOUR(hour), comments=list(comments), **fields)


def event(number: int, hour: int, **child: Any) -> dict[str, Any]:
    child = {"id": number * 10, **child}
    return {
        "ticket_events": [{"id": number, "ticket_id": 1, "created_at": HOUR(hour), "child_events": [child]}]
    }


def comment(body: str, **fields: Any) -> dict[str, Any]:
    return zendesk_comment(5, 20978392, f"<p>{body}</p>", 1, body=body, plain_body=body, **fields)


FIRST: Final = zendesk_comment(4, 20978392, "<p>Hello</p>", 0)
SOURCE: Final = {
    "type": "email",
    "id": "1",
    "subject": "",
    "body": f"<p>{CARD}</p>",
    "author": ADA,
    "redacted": False,
}

WITHDRAWN: Final[dict[str, tuple[str, list[Any], dict[str, int]]]] = {
    "a message that Chatwoot has deleted": (
        "chatwoot",
        [
            chatwoot_page(9, chatwoot_message(1, 0, CARD, T)),
            chatwoot_page(10, {**chatwoot_message(1, 0, CARD, T), **DELETED}),
            {"payload": [chatwoot_message(1, 0, CARD, T), chatwoot_message(2, 0, "Hello?", T)]},
        ],
        {"deleted": 1},
    ),
    "a row of Chatwoot that is deleted": (
        "chatwoot",
        [
            ROW_OF_CONVERSATION,
            chatwoot_row(9, content=CARD),
            chatwoot_row(10, content="This message was deleted", content_attributes='{"deleted": true}'),
            chatwoot_row(8, content=CARD, content_attributes='{"deleted": false, "n": ' + "9" * 5_000 + "}"),
        ],
        {"deleted": 1},
    ),
    "a part that Intercom has redacted": (
        "intercom",
        [
            intercom(10, intercom_part(1, "comment", ADA, f"<p>{CARD}</p>", T + 5)),
            intercom(12, intercom_part(1, "comment", ADA, None, T + 5, redacted=True)),
            intercom(11, intercom_part(1, "comment", ADA, f"<p>{CARD}</p>", T + 5), state="open"),
        ],
        {"redacted": 1},
    ),
    "the first message of a conversation of Intercom": (
        "intercom",
        [intercom(10, source=SOURCE), intercom(12, source={**SOURCE, "body": None, "redacted": True})],
        {"redacted": 1},
    ),
    "a conversation that Intercom has deleted": (
        "intercom",
        [
            intercom(10, source=SOURCE),
            {"id": "471", "object": "conversation", "deleted": True},
            intercom(11, source=SOURCE),
        ],
        {"deleted": 1},
    ),
    "a ticket that Zendesk has deleted": (
        "zendesk",
        [ticket(10, FIRST, subject=CARD), ticket(12, status="deleted"), ticket(11, FIRST, comment(CARD))],
        {"deleted": 1},
    ),
    "a ticket in the list of deleted ones": (
        "zendesk",
        [
            ticket(10, FIRST, subject=CARD),
            {"deleted_tickets": [{"id": 1, "subject": CARD, "deleted_at": HOUR(12)}]},
        ],
        {"deleted": 1},
    ),
    "a comment of which Zendesk tells only that it was redacted": (
        "zendesk",
        [ticket(10, FIRST, comment(CARD)), event(1, 12, event_type="CommentRedactionEvent", comment_id=5)],
        {"redacted": 1},
    ),
    "an audit of a redaction": (
        "zendesk",
        [
            ticket(10, description=CARD),
            {"comments": [comment(CARD)], "ticket_id": 1},
            {
                "audits": [
                    {
                        "id": 2,
                        "ticket_id": 1,
                        "created_at": HOUR(12),
                        "events": [{"id": 3, "type": "CommentRedactionEvent", "comment_id": 5}],
                    }
                ]
            },
        ],
        {"redacted": 1},
    ),
    "the description of a ticket whose only comment was redacted": (
        "zendesk",
        [ticket(10, description=CARD), event(1, 12, event_type="CommentRedactionEvent", comment_id=5)],
        {"redacted": 1},
    ),
    "two redactions of a comment that was fetched between them": (
        "zendesk",
        [
            ticket(11, FIRST, comment(f"▇▇▇▇, {CARD}")),
            ticket(10, FIRST, comment(f"Ada, {CARD}")),
            event(1, 10, event_type="CommentRedactionEvent", comment_id=5),
            event(2, 12, event_type="CommentRedactionEvent", comment_id=5),
        ],
        {"redacted": 1},
    ),
}


@pytest.mark.parametrize("case", WITHDRAWN)
def test_withdrawn_text_is_left_out_in_any_order_of_versions(case: str) -> None:
    source, records, notes = WITHDRAWN[case]
    outputs = set()
    for order in permutations(records):
        done = converted(source, *order)
        assert "4111" not in words(done)
        assert {name: done.notes.get(name) for name in notes} == notes
        assert done.deletions
        outputs.add(done.output)
    assert len(outputs) == 1


def test_redacted_words_win_in_any_order_of_versions_and_are_marked() -> None:
    records = [
        ticket(10, FIRST, comment(CARD)),
        {"comments": [comment("my card is ▇▇▇▇")], "ticket_id": 1},
        event(1, 12, event_type="CommentRedactionEvent", comment_id=5),
    ]
    for order in permutations(records):
        done = converted("zendesk", *order, *ZENDESK_USERS)
        assert [each["text"] for each in done.messages] == ["Hello", "my card is ▇▇▇▇"]
        assert [each.get("redacted", False) for each in done.messages] == [False, True]
        assert done.deletions == []


def test_a_comment_that_became_internal_stays_so() -> None:
    change = event(1, 12, event_type="CommentPrivacyChange", comment_id=5, public=False)
    for order in permutations([ticket(10, FIRST, comment("between us")), change]):
        assert [each.get("internal", False) for each in converted("zendesk", *order).messages] == [
            False,
            True,
        ]
    for order in permutations(
        [{"ticket_id": 1, "comments": [comment("us", public=each)]} for each in (True, False)]
    ):
        assert converted("zendesk", ticket(10), *order).messages[0]["internal"]


def test_redacted_attachment_has_no_link() -> None:
    files = [
        {"id": number, "file_name": f"{number}.png", "content_url": f"https://z.example/{number}"}
        for number in (7, 8)
    ]
    gone = event(1, 12, event_type="AttachmentRedactionEvent", comment_id=5, attachment_id=7)
    for order in permutations([ticket(10, FIRST, comment("See", attachments=files)), gone]):
        done = converted("zendesk", *order)
        assert done.messages[1]["text"] == "See\n[attachment: 8.png] https://z.example/8"


def test_restored_ticket_is_converted() -> None:
    records = [ticket(10, FIRST), ticket(11, status="deleted"), ticket(12, FIRST, status="open")]
    for order in permutations(records):
        done = converted("zendesk", *order)
        assert [each["status"] for each in done.conversations] == ["OPEN"]
        assert (done.deletions, done.notes.get("deleted")) == ([], None)


def test_a_person_is_as_the_newest_record_has_them() -> None:
    def user(hour: int, **fields: Any) -> dict[str, Any]:
        return {"users": [{**ZENDESK_USERS[0], "updated_at": HOUR(hour), **fields}]}

    records = [
        user(10, phone="1"),
        user(12, name="Ada King", email=None),
        user(11, name="Ada Byron"),
        ticket(9, FIRST),
    ]
    for order in permutations(records):
        contact = converted("zendesk", *order).conversations[0]["contact"]
        assert contact["name"] == "Ada King"
        assert "email" not in contact


@pytest.mark.parametrize(
    ("source", "records"),
    [
        (
            "zendesk",
            [
                ticket(9, FIRST),
                {"users": [ZENDESK_USERS[0]]},
                {"users": [{**ZENDESK_USERS[0], "active": False, "permanently_deleted": True}]},
            ],
        ),
        (
            "intercom",
            [
                intercom(9),
                {**ADA, "phone": "+4930"},
                {"id": ADA["id"], "object": "contact", "external_id": "u1", "deleted": True},
            ],
        ),
    ],
)
def test_a_deleted_person_has_no_name_and_no_address(source: str, records: list[Any]) -> None:
    for order in permutations(records):
        done = converted(source, *order)
        assert done.conversations[0]["contact"].keys() <= {"userId", "createdAt"}
        assert "Lovelace" not in words(done)
        assert "ada@" not in words(done)
        assert done.notes["person_deleted"] == 1


def test_renamed_agent_has_the_newest_name_everywhere() -> None:
    renamed = {**GRACE, "name": "Grace Murray"}
    records = [
        intercom(10, intercom_part(1, "comment", GRACE, "<p>One</p>", T + 1)),
        intercom(12, intercom_part(2, "comment", renamed, "<p>Two</p>", T + 2)),
    ]
    for order in permutations(records):
        done = converted("intercom", *order)
        assert done.said[1:] == [("agent Grace Murray", "One"), ("agent Grace Murray", "Two")]


def test_messages_of_one_second_have_the_order_of_their_ids() -> None:
    for order in permutations([chatwoot_message(number, 0, str(number), T) for number in (9, 10, 100)]):
        done = converted("chatwoot", chatwoot_conversation(), {"payload": list(order)})
        assert [each["externalId"] for each in done.messages] == ["9", "10", "100"]
    parts = [intercom_part(number, "comment", ADA, f"<p>{number}</p>", T) for number in (10, 9)]
    assert [each["externalId"] for each in converted("intercom", intercom(9, *parts)).messages] == [
        "source-471",
        "9",
        "10",
    ]


EXPORTS: Final[dict[str, list[Any]]] = {
    "chatwoot": [
        ROW_OF_CONVERSATION,
        {**ROW_OF_CONVERSATION, "status": 1, "updated_at": HOUR(12)},
        {"table": "contacts", **SENDER, "updated_at": HOUR(9)},
        {"table": "contacts", **SENDER, "name": "Ada King", "updated_at": HOUR(11)},
        {"table": "inboxes", "id": 3, "name": "Web", "updated_at": HOUR(9)},
        {"table": "inboxes", "id": 3, "name": "Website", "updated_at": HOUR(10)},
        {
            "table": "csat_survey_responses",
            "id": 1,
            "conversation_id": 9001,
            "rating": 2,
            "created_at": HOUR(10),
        },
        {
            "table": "csat_survey_responses",
            "id": 1,
            "conversation_id": 9001,
            "rating": 5,
            "updated_at": HOUR(11),
        },
        chatwoot_row(9, content=CARD),
        chatwoot_row(11, content="gone", content_attributes={"deleted": True}),
        chatwoot_row(9, id=2, content="before"),
        chatwoot_row(12, id=2, content="after"),
    ],
    "intercom": [
        intercom(10, intercom_part(1, "comment", ADA, f"<p>{CARD}</p>", T + 5)),
        intercom(12, intercom_part(1, "comment", ADA, None, T + 5, redacted=True), state="snoozed"),
        intercom(11, intercom_part(2, "comment", GRACE, "<p>Hello</p>", T + 5)),
        {**ADA, "type": "contact", "updated_at": at(9), "phone": "+4930"},
        {**ADA, "type": "contact", "updated_at": at(13), "name": "Ada King"},
        {"type": "conversation", "id": "9", "deleted": True},
        {**intercom(9), "id": "9"},
    ],
    "zendesk": [
        ticket(10, FIRST, comment(CARD)),
        ticket(12, FIRST, status="hold"),
        event(1, 11, event_type="CommentRedactionEvent", comment_id=5),
        zendesk_ticket(2, updated_at=HOUR(10)),
        {**zendesk_ticket(2), "updated_at": HOUR(11), "status": "deleted"},
        *({**each, "updated_at": HOUR(9)} for each in ZENDESK_USERS),
        {**ZENDESK_USERS[1], "name": "Grace Murray", "updated_at": HOUR(10)},
        {"groups": [{"id": 98738, "name": "Post", "updated_at": HOUR(9)}]},
        {"groups": [{"id": 98738, "name": "Shipping", "updated_at": HOUR(10)}]},
    ],
}


@pytest.mark.parametrize("source", EXPORTS)
@budget(150)
@given(data=st.data())
def test_order_and_split_of_files_change_nothing(source: str, data: st.DataObject) -> None:
    records = deepcopy(EXPORTS[source])
    expected = converted(source, *records)
    again = data.draw(st.lists(st.sampled_from(records), max_size=3))
    order = data.draw(st.permutations([*records, *again]))
    files: list[bytes] = []
    while order:
        size = data.draw(st.integers(1, len(order)))
        some, order = order[:size], order[size:]
        if data.draw(st.booleans()):
            files.append(json.dumps(some, indent=data.draw(st.sampled_from([None, 2]))).encode())
        else:
            files.append("\n".join(map(json.dumps, some)).encode())
    done = converted_bytes(source, *files)
    assert done.output == expected.output
    assert "4111" not in words(done)
    counted = {"deleted", "redacted", "no_thread", "person_deleted"}
    assert {name: done.notes.get(name) for name in counted} == {
        name: expected.notes.get(name) for name in counted
    }
