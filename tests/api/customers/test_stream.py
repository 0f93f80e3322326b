"""A customer's stream: its events, its start, its limits and its end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from deskwire.engine.customers.streams import MAX_STREAMS_PER_SESSION
from tests.support.api.agent_stream import Page, page
from tests.support.api.customers import SITE, Browser, make_channel, signed
from tests.support.api.service import Service, running, tapping
from tests.support.api.staff import code, person
from tests.support.deadlines import fail_after_idle
from tests.support.stores import AnyStore

NEVER = f"evt_{'0' * 26}"


@asynccontextmanager
async def customer(
    service: Service, channel: dict[str, Any], user: str | None = "u1"
) -> AsyncIterator[Browser]:
    """Yield a customer's browser with a session, of a visitor without `user`."""
    async with Browser(service, channel) as browser:
        started = await browser.start(None if user is None else signed(channel, user))
        assert started.status_code == 200, started.text
        yield browser


@asynccontextmanager
async def tab(
    browser: Browser, headers: dict[str, str] | None = None, /, **params: str
) -> AsyncIterator[Page]:
    """Yield an open stream of the browser."""
    own = {"Authorization": f"Bearer {browser.token}", "Origin": SITE}
    async with page(browser.http, {**own, **(headers or {})}, **params) as opened:
        yield opened


async def texts(opened: Page, count: int) -> list[str]:
    """Return the texts of the next messages."""
    found: list[str] = []
    while len(found) < count:
        event = await opened.event()
        if event["type"] == "message.created":
            found.append(event["data"]["message"]["text"])
    return found


async def test_all_tabs_and_devices_get_each_event_as_the_customer_sees_it(service: Service) -> None:
    channel = await make_channel(service)
    conversation = await service.create("u1", attributes={"fraudScore": 97})
    async with (
        customer(service, channel) as laptop,
        customer(service, channel) as phone,
        tab(laptop) as one,
        tab(laptop) as two,
        tab(phone) as three,
    ):
        assert one.headers["content-type"] == "text/event-stream"
        assert one.headers["access-control-allow-origin"] == "*"
        assert (one.hello["resumedAfter"], one.hello["gap"], one.hello["heartbeatS"]) == (None, False, 15)
        await service.say(conversation, "hello")
        received = [await each.next("message") for each in (one, two, three)]
        assert len({each.raw for each in received}) == 1
        assert received[0].id == received[0].data["id"]
        assert "fraudScore" not in received[0].raw
        assert received[0].data["data"]["message"]["text"] == "hello"


async def test_stream_has_the_contacts_own_events_only(service: Service) -> None:
    channel = await make_channel(service)
    mine, other = await service.create("u1"), await service.create("u2")
    async with customer(service, channel) as browser, tab(browser) as opened:
        path = f"/conversations/{mine['id']}/messages"
        async with person(service, "agent") as colleague:
            mention = {"text": "@Agent a note", "internal": True, "mentions": [colleague.id]}
            note = await service.dashboard.post(path, json=mention)
            assert note.status_code == 200, note.text
            follow = await service.dashboard.put(f"/conversations/{mine['id']}/follow")
            assert follow.json()["followers"][-1] == colleague.id
            for where in (f"/conversations/{mine['id']}", path, "/conversations", "/events"):
                shown = (await browser.call("GET", where)).text
                assert not any(each in shown for each in ("a note", colleague.id, "mention", "follow"))
        await service.say(other, "of another customer")
        await service.say(mine, "mine")
        received = await opened.next("message")
        assert received.data["data"]["message"]["text"] == "mine"


async def test_stream_continues_after_the_event_in_header_or_parameter(service: Service) -> None:
    channel = await make_channel(service)
    conversation = await service.create("u1")
    async with customer(service, channel) as browser:
        async with tab(browser) as opened:
            await service.say(conversation, "one")
            seen = await opened.event()
        for text in ("two", "three"):
            await service.say(conversation, text)
        for header, params in (({"Last-Event-ID": seen["id"]}, {}), ({}, {"after": seen["id"]})):
            async with tab(browser, header, **params) as opened:
                assert (opened.hello["resumedAfter"], opened.hello["gap"]) == (seen["id"], False)
                assert await texts(opened, 2) == ["two", "three"]
        async with tab(browser, after=NEVER) as opened:
            assert await texts(opened, 3) == ["one", "two", "three"]


async def test_session_cursor_is_the_start_without_gap(service: Service) -> None:
    channel = await make_channel(service)
    conversation = await service.create("u1")
    async with Browser(service, channel) as browser:
        cursor = (await browser.start(signed(channel, "u1"))).json()["cursor"]
        await service.say(conversation, "between session and stream")
        async with tab(browser, after=cursor) as opened:
            assert not opened.hello["gap"]
            assert await texts(opened, 1) == ["between session and stream"]


async def test_unknown_and_pruned_events_are_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores = tapping(monkeypatch)
    async with running(tmp_path) as service:
        store: AnyStore = stores[-1]
        channel = await make_channel(service)
        conversation = await service.create("u1")
        for text in ("one", "two", "three"):
            await service.say(conversation, text)
        events = await service.events()
        async with customer(service, channel) as browser:
            async with tab(browser, after="evt_7ZZZZZZZZZZZZZZZZZZZZZZZZZ") as opened:
                assert (opened.hello["gap"], opened.hello["resumedAfter"]) == (True, None)
            # The first event, of the channel's creation, is for agents only.
            await store.write(lambda tx: tx.prune_events(1 << 60, 3, 0))
            for event, gap in zip(events[:3], (True, False, False), strict=True):
                async with tab(browser, after=event["id"]) as opened:
                    assert opened.hello["gap"] is gap
            polled = (await browser.call("GET", "/events", params={"after": events[0]["id"]})).json()
            assert (polled["gap"], polled["events"]) == (True, [])
            await service.say(conversation, "four")
            after = {"after": polled["cursor"]}
            polled = (await browser.call("GET", "/events", params=after)).json()
            assert [each["data"]["message"]["text"] for each in polled["events"]] == ["four"]


async def test_redacted_message_is_reported_and_replayed_redacted(service: Service) -> None:
    channel = await make_channel(service)
    conversation = await service.create("u1")
    async with customer(service, channel) as browser, tab(browser) as opened:
        said = await service.say(conversation, "card 4111")
        first = await opened.event()
        path = f"/s2s/conversations/{conversation['id']}/messages/{said['id']}/redact"
        assert (await service.http.post(path, json={"text": True})).status_code == 200
        event = await opened.event()
        assert event["data"]["redactedMessageIds"] == [said["id"]]
        async with tab(browser, after=NEVER) as again:
            replayed = [await again.next("message"), await again.next("message")]
            assert first["id"] in [each.id for each in replayed]
            assert not any("4111" in each.raw for each in replayed)


async def test_conversation_moved_by_a_merge_appears_in_the_open_stream(service: Service) -> None:
    channel = await make_channel(service)
    await service.create("u1")
    moved = await service.create("u2")
    await service.say(moved, "before the merge")
    async with customer(service, channel) as browser, tab(browser) as opened:
        answer = await service.http.post("/s2s/contacts/u1/merge", json={"from": "u2"})
        assert answer.status_code == 200, answer.text
        event = await opened.event()
        assert (event["type"], event["data"]["conversation"]["id"]) == ("conversation.updated", moved["id"])
        await service.say(moved, "after it")
        assert await texts(opened, 1) == ["after it"]


async def test_agents_typing_passes_with_the_name_only(service: Service) -> None:
    channel = await make_channel(service)
    mine, other = await service.create("u1"), await service.create("u2")
    async with customer(service, channel) as browser, tab(browser) as opened:

        async def types(conversation: dict[str, Any], **how: bool) -> None:
            path = f"/conversations/{conversation['id']}/typing"
            assert (await service.dashboard.post(path, json={"typing": True, **how})).status_code == 200

        await types(other)
        await types(mine, internal=True)
        await types(mine)
        received = (await opened.next("passing")).data
        assert received["type"] == "agent.typing.started"
        assert received["data"]["conversationId"] == mine["id"]
        assert [*received["data"]["agent"]] == ["name"]
        await service.say(mine, "the note was not shown")
        assert (await opened.next()).name == "message"


async def test_long_poll_waits_for_an_event_and_returns_its_cursor(service: Service) -> None:
    channel = await make_channel(service)
    conversation = await service.create("u1")
    async with customer(service, channel) as browser:
        empty = (await browser.call("GET", "/events")).json()
        assert (empty["events"], empty["gap"]) == ([], False)
        found: list[dict[str, Any]] = []

        async def poll() -> None:
            params = {"after": empty["cursor"], "wait": 20}
            found.append((await browser.call("GET", "/events", params=params)).json())

        with fail_after_idle(15):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(poll)
                await trio.sleep(0.1)
                await service.say(conversation, "during the poll")
        (event,) = found[0]["events"]
        assert (event["data"]["message"]["text"], found[0]["cursor"]) == ("during the poll", event["id"])
        for bad in ({"wait": 26}, {"wait": -1}, {"after": "x"}):
            answer = await browser.call("GET", "/events", params=bad)
            assert answer.status_code == 400, answer.text


async def test_streams_of_a_session_are_limited(service: Service) -> None:
    channel = await make_channel(service)
    async with customer(service, channel) as browser, AsyncExitStack() as stack:
        for _ in range(MAX_STREAMS_PER_SESSION):
            await stack.enter_async_context(tab(browser))
        for path in ("/stream", "/events"):
            refused = await browser.call("GET", path)
            assert code(refused) == (429, "too_many_streams")
            assert refused.headers["retry-after"] == "10"
        async with customer(service, channel) as phone, tab(phone) as other:
            assert other.hello["gap"] is False, "another session of the contact"
        await stack.aclose()
        with fail_after_idle(5):
            while (await browser.call("GET", "/events")).status_code == 429:
                await trio.lowlevel.checkpoint()


async def test_visitors_leave_room_for_known_customers(tmp_path: Path) -> None:
    async with running(tmp_path, customer_streams=2) as service:
        channel = await make_channel(service)
        async with (
            customer(service, channel, None) as visitor,
            tab(visitor),
            customer(service, channel, None) as another,
        ):
            refused = await another.call("GET", "/stream")
            assert code(refused) == (429, "too_many_streams")
            assert "DESKWIRE_CUSTOMER_STREAMS" in refused.json()["detail"]
            async with customer(service, channel) as known, tab(known) as opened:
                assert opened.hello["gap"] is False


async def test_stream_ends_with_its_session(service: Service) -> None:
    channel = await make_channel(service)
    await service.create("u1")
    async with (
        customer(service, channel) as laptop,
        customer(service, channel) as phone,
        tab(laptop) as mine,
        tab(phone) as other,
    ):
        assert (await laptop.call("DELETE", "/me")).status_code == 200
        with fail_after_idle(2):
            assert await mine.bye() == "session_ended"
        contact = (await service.http.get("/s2s/contacts/u1")).json()["id"]
        assert (await service.dashboard.delete(f"/contacts/{contact}")).status_code == 200
        with fail_after_idle(2):
            assert await other.bye() == "session_ended"
        assert code(await phone.call("GET", "/stream")) == (401, "session_ended")


async def test_stream_ends_when_its_contact_is_merged_away(service: Service) -> None:
    channel = await make_channel(service)
    for user in ("u1", "u2"):
        await service.create(user)
    async with customer(service, channel, "u2") as browser, tab(browser) as opened:
        answer = await service.http.post("/s2s/contacts/u1/merge", json={"from": "u2"})
        assert answer.status_code == 200, answer.text
        with fail_after_idle(2):
            assert await opened.bye() == "session_ended"


@pytest.mark.parametrize("change", [{"enabled": False}, {"identity": {"mode": "required"}}, None])
async def test_stream_ends_when_its_channel_refuses_it(
    service: Service, change: dict[str, Any] | None
) -> None:
    channel = await make_channel(service)
    path = f"/channels/{channel['id']}"
    async with customer(service, channel, None) as visitor, tab(visitor) as opened:
        if change is None:
            answer = await service.http.delete(path)
        else:
            answer = await service.http.patch(path, json=change)
        assert answer.status_code == 200, answer.text
        with fail_after_idle(2):
            assert await opened.bye() == "session_ended"


async def test_streams_end_with_the_service_and_come_back(tmp_path: Path) -> None:
    async with running(tmp_path) as service:
        channel = await make_channel(service)
        conversation = await service.create("u1")
        async with customer(service, channel) as browser, tab(browser) as opened:
            await service.say(conversation, "before")
            seen = await opened.event()
            service.stop()
            *_, bye = await opened.rest()
            assert (bye.name, bye.data["reason"]) == ("bye", "shutdown")
            assert 500 <= bye.data["retryAfterMs"] <= 2_500
            token = browser.token
    async with running(tmp_path) as service:
        await service.say(conversation, "after")
        async with Browser(service, channel) as browser:
            browser.token = token
            async with tab(browser, after=seen["id"]) as opened:
                assert not opened.hello["gap"]
                assert await texts(opened, 1) == ["after"]


async def test_visitors_stream_continues_with_the_first_message(service: Service) -> None:
    channel = await make_channel(service)
    async with customer(service, channel, None) as visitor, tab(visitor) as opened:
        body = {"clientId": "c1", "message": {"text": "is anyone there?", "clientId": "m1"}}
        answer = await visitor.call("POST", "/conversations", json=body)
        assert answer.status_code == 200, answer.text
        assert await texts(opened, 1) == ["is anyone there?"]
        conversation = {"id": answer.json()["id"]}
        await service.say(conversation, "yes", author={"type": "bot"})
        assert await texts(opened, 1) == ["yes"]


async def test_stream_needs_a_customers_token(service: Service) -> None:
    for path in ("/customer/stream", "/customer/events"):
        refused = await service.http.get(path)
        assert refused.status_code == 401, refused.text
        refused = await service.http.get(path, headers={"Authorization": ""})
        assert refused.status_code == 401


async def test_agent_sees_the_presence_of_the_viewed_contact(service: Service) -> None:
    channel = await make_channel(service)
    conversation = await service.create("u1")
    contact = conversation["contact"]["id"]
    path = f"/contacts/{contact}/presence"
    async with page(service.dashboard) as desk:
        shown = {"conversationIds": [conversation["id"]], "composing": None}
        await service.dashboard.put(f"/stream/{desk.hello['streamId']}/view", json=shown)
        offline = {"contactId": contact, "online": False, "page": None}
        assert await desk.passing("contact.presence") == offline
        assert (await service.dashboard.get(path)).json() == offline
        async with customer(service, channel) as browser, tab(browser):
            assert await desk.passing("contact.presence") == {**offline, "online": True}
            assert (await service.dashboard.get(path)).json()["online"]
            where = {"url": "https://shop.example/cart", "title": "Cart"}
            changed = await browser.call("PATCH", "/me", json={"context": where})
            assert changed.status_code == 200, changed.text
            assert (await desk.passing("contact.presence"))["page"] == where
        assert await desk.passing("contact.presence") == offline
    assert code(await service.dashboard.get(f"/contacts/con_{'0' * 26}/presence")) == (
        404,
        "contact_not_found",
    )


async def test_agent_sees_the_presence_of_the_contact_after_a_merge(service: Service) -> None:
    channel = await make_channel(service)
    conversation = await service.create("visitor")
    async with page(service.dashboard) as desk, customer(service, channel) as browser, tab(browser):
        shown = {"conversationIds": [conversation["id"]], "composing": None}
        await service.dashboard.put(f"/stream/{desk.hello['streamId']}/view", json=shown)
        assert not (await desk.passing("contact.presence"))["online"]
        merged = await service.http.post("/s2s/contacts/u1/merge", json={"from": "visitor"})
        assert merged.status_code == 200, merged.text
        presence = await desk.passing("contact.presence")
        assert (presence["contactId"], presence["online"]) == (merged.json()["id"], True)
