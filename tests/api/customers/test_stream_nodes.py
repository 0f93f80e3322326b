"""Customers' streams on two nodes of one database."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.api.customers.test_stream import customer, tab, texts
from tests.support.api.agent_stream import page
from tests.support.api.customers import Browser, make_channel
from tests.support.api.service import Service, running
from tests.support.deadlines import fail_after_idle


@pytest.fixture
async def nodes(tmp_path: Path, postgres_url: str) -> AsyncIterator[tuple[Service, Service]]:
    """Two services on one database, with one secret."""
    settings: dict[str, Any] = {"database_url": postgres_url, "files": "database"}
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    async with running(tmp_path / "a", node="a", **settings) as a:
        for name in ("secret", "demo.json"):
            shutil.copy(tmp_path / "a" / name, tmp_path / "b" / name)
        async with running(tmp_path / "b", node="b", **settings) as b:
            yield a, b


async def test_stream_has_events_and_typing_of_the_other_node(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    channel = await make_channel(here)
    conversation = await here.create("u1")
    async with customer(there, channel) as browser, tab(browser) as opened:
        for number in range(5):
            await (here, there)[number % 2].say(conversation, f"{number}")
        assert await texts(opened, 5) == [*"01234"]
        path = f"/conversations/{conversation['id']}/typing"

        async def types() -> None:
            while True:  # the relay learns within half a second that this node has a reader
                for typing in (True, False):
                    await here.dashboard.post(path, json={"typing": typing})

        async with trio.open_nursery() as nursery:
            nursery.start_soon(types)
            received = (await opened.next("passing")).data
            nursery.cancel_scope.cancel()
        assert received["data"]["agent"].keys() == {"name"}


async def test_stream_continues_on_the_other_node(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    channel = await make_channel(here)
    conversation = await here.create("u1")
    async with customer(here, channel) as browser:
        async with tab(browser) as opened:
            await here.say(conversation, "one")
            seen = await opened.event()
        await here.say(conversation, "two")
        async with Browser(there, channel) as elsewhere:
            elsewhere.token = browser.token
            async with tab(elsewhere, after=seen["id"]) as opened:
                assert not opened.hello["gap"]
                await there.say(conversation, "three")
                assert await texts(opened, 2) == ["two", "three"]


async def test_session_ended_on_one_node_ends_streams_on_the_other(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    channel = await make_channel(here)
    async with customer(here, channel) as browser, Browser(there, channel) as elsewhere:
        elsewhere.token = browser.token
        async with tab(elsewhere) as opened:
            assert (await browser.call("DELETE", "/me")).status_code == 200
            with fail_after_idle(2):
                assert await opened.bye() == "session_ended"


async def test_agent_on_one_node_sees_a_contact_on_the_other(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    channel = await make_channel(here)
    conversation = await here.create("u1")
    contact = conversation["contact"]["id"]
    async with page(here.dashboard) as desk:
        shown = {"conversationIds": [conversation["id"]], "composing": None}
        await here.dashboard.put(f"/stream/{desk.hello['streamId']}/view", json=shown)
        assert (await desk.passing("contact.presence"))["online"] is False
        async with customer(there, channel) as browser, tab(browser):
            assert (await desk.passing("contact.presence"))["online"] is True
            found = await here.dashboard.get(f"/contacts/{contact}/presence")
            assert found.json() == {"contactId": contact, "online": True, "page": None}
        assert (await desk.passing("contact.presence"))["online"] is False


@pytest.mark.parametrize("by", ["customer", "backend"])
async def test_agent_on_one_node_sees_a_contact_type_on_the_other(
    nodes: tuple[Service, Service], by: str
) -> None:
    here, there = nodes
    channel = await make_channel(here)
    conversation = await here.create("u1")
    contact = {"id": conversation["contact"]["id"], "name": conversation["contact"]["name"]}
    async with page(here.dashboard) as desk, customer(there, channel) as browser:

        async def types() -> None:
            path = f"conversations/{conversation['id']}/typing"
            while True:  # the other node learns from an announcement that this one has agents
                for typing in (True, False):
                    if by == "customer":
                        answer = await browser.call("POST", f"/{path}", json={"typing": typing})
                    else:
                        answer = await there.http.post(f"/s2s/{path}", json={"typing": typing})
                    assert answer.status_code == 204, answer.text

        async with trio.open_nursery() as nursery:
            nursery.start_soon(types)
            for kind in ("contact.typing.started", "contact.typing.stopped"):
                assert await desk.passing(kind) == {"conversationId": conversation["id"], "contact": contact}
            nursery.cancel_scope.cancel()
