"""Messages that say that their text is Markdown: the text is the same bytes in every place where it is read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.api.events.test_channels_agree import receiving, register
from tests.api.exports.test_project_export import export
from tests.support.api.agent_stream import page
from tests.support.api.import_lines import bring, conversation, counts, messages_of
from tests.support.api.import_lines import found as imported
from tests.support.api.import_lines import message as line
from tests.support.api.inbox import pointers
from tests.support.api.service import Service
from tests.support.api.writing import found, held, hold

TEXT = "**Hi** _you_,\n\n1. `a * b`\n2. [here](https://example.com/a_b?c=1&d=2)\n\n> \\*q\\* &amp; <b>\u202e\t\U0001f600  \n```\n*x*\n```"
MARKED = {"text": TEXT, "format": "markdown"}
AGENT = {"type": "agent", "name": "Grace"}


def shown(message: dict[str, Any]) -> tuple[str, str | None]:
    """Return a message's text and format."""
    return message["text"], message.get("format")


async def reply(service: Service, conversation: dict[str, Any], **body: Any) -> dict[str, Any]:
    """Post a message as the signed-in agent; return it."""
    return found(await service.dashboard.post(f"/conversations/{conversation['id']}/messages", json=body))


async def test_markdown_keeps_its_text_and_format_wherever_it_is_read(service: Service) -> None:
    expected = [("*Hello*", None), (TEXT, "markdown")]
    async with receiving() as receiver, page(service.dashboard) as agents:
        await register(service, receiver.url, events=["message.created"])
        conversation = await service.create(message={"text": "*Hello*"})
        assert shown(await reply(service, conversation, **MARKED)) == expected[1]
        await reply(service, conversation, internal=True, **MARKED)
        await receiver.wait(2)
        delivered = [json.loads(request.body)["data"]["message"] for request in receiver.requests]
        assert [shown(each) for each in delivered] == expected
        streamed: list[dict[str, Any]] = []
        while len(streamed) < 3:
            event = await agents.event()
            streamed += [event["data"]["message"]] if "message" in event["data"] else []
        assert [shown(each) for each in streamed] == [*expected, expected[1]]
    thread = found(await service.dashboard.get(f"/conversations/{conversation['id']}/messages"))["items"]
    assert [shown(each) for each in thread] == [*expected, expected[1]]
    assert [shown(each) for each in await messages_of(service.http, conversation["id"])] == expected
    assert [shown(each) for each in (await export(service, "messages"))[0]] == expected
    assert "format" not in thread[0]


async def test_held_markdown_is_sent_as_markdown(service: Service) -> None:
    conversation = await service.create()
    waiting = await hold(service.dashboard, conversation, format="markdown", text=TEXT)
    assert shown(waiting) == (TEXT, "markdown")
    assert [shown(each) for each in await held(service.dashboard)] == [(TEXT, "markdown")]
    found(await service.dashboard.post(f"/held-messages/{waiting['id']}/send", json={}))
    assert [shown(each) for each in await messages_of(service.http, conversation["id"])] == [
        (TEXT, "markdown")
    ]


@pytest.mark.parametrize("author", [AGENT, {"type": "bot", "name": "Robo"}, {"type": "system"}])
async def test_a_backend_may_send_markdown_of_all_authors_but_the_contact(
    service: Service, author: dict[str, Any]
) -> None:
    conversation = await service.create()
    posted = await service.say(conversation, TEXT, author=author, format="markdown")
    assert shown(posted) == (TEXT, "markdown")


async def test_a_text_of_the_contact_has_no_format(service: Service) -> None:
    conversation = await service.create()
    path = f"/s2s/conversations/{conversation['id']}/messages"
    for author in ({}, {"author": {"type": "contact"}}):
        answer = await service.http.post(path, json={**MARKED, **author})
        assert pointers(answer) == {"/format": "not_allowed"}
    first = await service.http.post(
        "/s2s/conversations", json={"contact": {"userId": "u9"}, "message": MARKED}
    )
    assert pointers(first) == {"/message/format": "not_allowed"}


async def test_an_unknown_format_is_refused_with_its_place(service: Service) -> None:
    conversation = await service.create()
    for wrong in ("html", "", None, 1, ["markdown"], "Markdown"):
        body = {"text": "a", "author": AGENT, "format": wrong}
        answer = await service.http.post(f"/s2s/conversations/{conversation['id']}/messages", json=body)
        if wrong is None:
            assert "format" not in found(answer)
        else:
            assert list(pointers(answer)) == ["/format"], wrong


async def test_imported_messages_have_the_format_of_their_line(service: Service) -> None:
    records = [conversation("z-1"), line("z-1", 0), line("z-1", 1, **MARKED), line("z-1", 2)]
    report = await bring(service.http, *records)
    assert report["imported"] == counts(1, 3)
    stored = await messages_of(service.http, (await imported(service.http, "z-1"))["id"])
    assert [each.get("format") for each in stored] == [None, "markdown", None]
    assert stored[1]["text"] == TEXT
    again = await bring(service.http, *records)
    assert (again["imported"], again["refused"]) == (counts(0, 0), 0)
    plain = await bring(service.http, conversation("z-1"), line("z-1", 1, text=TEXT))
    assert plain["refused"] == 1
    wrong = await bring(service.http, conversation("z-2"), line("z-2", 0, **MARKED))
    assert [each["pointer"] for each in wrong["refusals"][0]["errors"]] == ["/format"]


async def test_a_redacted_text_is_plain_because_its_asterisks_are_no_markup(service: Service) -> None:
    conversation = await service.create()
    sent = await reply(service, conversation, text="(x) **secret** (y)", format="markdown")
    path = f"/s2s/conversations/{conversation['id']}/messages/{sent['id']}/redact"
    ranges = [{"start": 1, "end": 2}, {"start": 6, "end": 12}, {"start": 16, "end": 17}]
    redacted = found(await service.http.post(path, json={"ranges": ranges}))
    assert shown(redacted) == ("(*) ********** (*)", None)
    assert [shown(each) for each in await messages_of(service.http, conversation["id"])] == [shown(redacted)]
    events = [each["data"]["message"] for each in await service.events() if "message" in each["data"]]
    assert [shown(each) for each in events] == [shown(redacted)]
