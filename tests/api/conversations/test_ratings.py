"""Ratings with the contact's words beside them: answered, announced, shown where the rating is, and erased with it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.api.service import Service


async def test_a_comment_is_shown_wherever_the_rating_is(service: Service) -> None:
    conversation = await service.create(message={"text": "Hi"})
    rated = await service.do(conversation, "rating", rating=9, comment="Quick, and kind.")
    assert rated == {"rating": 9, "ratedAt": rated["ratedAt"], "comment": "Quick, and kind."}
    now = await service.fetch(conversation)
    assert (now["rating"], now["ratingComment"]) == (9, "Quick, and kind.")
    told = (await service.events())[-1]
    assert (told["type"], told["data"]["changed"]) == ("conversation.updated", ["rating", "ratingComment"])
    assert told["data"]["conversation"] == now
    seen = (
        await service.dashboard.get(f"/conversations/{conversation['id']}", params={"view": "agent"})
    ).json()
    assert seen["ratingComment"] == "Quick, and kind."
    exported = (await service.http.get("/s2s/contacts/u1/export")).json()
    assert exported["conversations"][0]["ratingComment"] == "Quick, and kind."


async def test_a_conversation_without_a_comment_has_no_such_field(service: Service) -> None:
    conversation = await service.create()
    assert "ratingComment" not in conversation
    assert (await service.do(conversation, "rating", rating=9)).keys() == {"rating", "ratedAt"}
    assert "ratingComment" not in await service.fetch(conversation)


@pytest.mark.parametrize(
    ("again", "comment", "changed"),
    [
        ({"rating": 9}, "Kind.", None),
        ({"rating": 9, "comment": "Kind."}, "Kind.", None),
        ({"rating": 9, "comment": "Slow."}, "Slow.", ["ratingComment"]),
        ({"rating": 9, "comment": None}, None, ["ratingComment"]),
        ({"rating": 2}, None, ["rating", "ratingComment"]),
        ({"rating": 2, "comment": "Kind."}, "Kind.", ["rating"]),
    ],
)
async def test_a_rating_that_is_given_again(
    service: Service, again: dict[str, Any], comment: str | None, changed: list[str] | None
) -> None:
    conversation = await service.create()
    await service.do(conversation, "rating", rating=9, comment="Kind.")
    events = len(await service.events())
    rated = await service.do(conversation, "rating", **again)
    assert (rated["rating"], rated.get("comment")) == (again["rating"], comment)
    assert (await service.fetch(conversation)).get("ratingComment") == comment
    told = (await service.events())[events:]
    assert [event["data"]["changed"] for event in told] == ([] if changed is None else [changed])


@pytest.mark.parametrize(
    ("comment", "code"),
    [("", "too_short"), (" ", "blank"), ("x" * 2_001, "too_long"), (7, "invalid"), ("\0", "nul_character")],
)
async def test_invalid_comment_is_refused_with_the_rating(service: Service, comment: Any, code: str) -> None:
    conversation = await service.create()
    answer = await service.http.post(
        f"/s2s/conversations/{conversation['id']}/rating", json={"rating": 11, "comment": comment}
    )
    found = {(each["pointer"], each["code"]) for each in answer.json()["errors"]}
    assert {("/rating", "too_large"), ("/comment", code)} <= found
    assert await service.fetch(conversation) == conversation


async def test_no_event_of_a_deletion_has_the_comment(service: Service) -> None:
    conversation = await service.create()
    await service.do(conversation, "rating", rating=1, comment="planted-words")
    assert (await service.http.delete(f"/s2s/conversations/{conversation['id']}")).status_code == 200
    assert "planted-words" not in (await service.http.get("/s2s/events")).text
