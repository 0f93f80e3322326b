"""Sessions of customers at two nodes: from the response to an end on, neither accepts the token."""

from __future__ import annotations

import pytest

from tests.api.events.test_two_nodes import nodes
from tests.support.api.customers import Browser, make_channel, signed
from tests.support.api.service import Service

__all__ = ["nodes"]


@pytest.mark.parametrize("end", ["sign-out", "agent", "backend", "another identity", "erasure", "merge"])
async def test_ended_session_is_refused_by_the_other_node(nodes: tuple[Service, Service], end: str) -> None:
    here, there = nodes
    channel = await make_channel(here)
    async with Browser(here, channel) as browser, Browser(there, channel) as other:
        await browser.start(signed(channel, "u1"))
        other.token = token = browser.token
        me = (await other.call("GET", "/me")).json()  # the other node has it in its cache now
        assert me["userId"] == "u1"
        match end:
            case "sign-out":
                assert (await browser.call("DELETE", "/me")).status_code == 200
            case "agent":
                path = f"/contacts/{me['id']}/sessions/{me['session']['id']}"
                assert (await here.dashboard.delete(path)).status_code == 200
            case "backend":
                path = f"/s2s/contacts/u1/sessions/{me['session']['id']}"
                assert (await here.http.delete(path)).status_code == 200
            case "another identity":
                assert (await browser.start(signed(channel, "u2"))).status_code == 200
            case "erasure":
                assert (await here.http.delete("/s2s/contacts/u1")).status_code == 200
            case _:
                await here.http.put("/s2s/contacts/u2", json={})
                answer = await here.http.post("/s2s/contacts/u2/merge", json={"from": "u1"})
                assert answer.status_code == 200
        other.token = browser.token = token
        for each in (other, browser):
            refused = await each.call("GET", "/me")
            assert (refused.status_code, refused.json()["code"]) == (401, "session_ended")


async def test_channel_that_is_disabled_at_one_node_is_so_at_the_other(
    nodes: tuple[Service, Service],
) -> None:
    here, there = nodes
    channel = await make_channel(here)
    async with Browser(there, channel) as browser:
        await browser.start(signed(channel, "u1"))
        assert (await browser.call("GET", "/me")).status_code == 200
        answer = await here.http.patch(f"/channels/{channel['id']}", json={"enabled": False})
        assert answer.status_code == 200
        assert (await browser.call("GET", "/me")).json()["code"] == "channel_disabled"


async def test_visitor_of_one_node_is_one_of_the_other(nodes: tuple[Service, Service]) -> None:
    here, there = nodes
    channel = await make_channel(here)
    async with Browser(here, channel) as browser, Browser(there, channel) as other:
        started = (await browser.start()).json()
        other.token = browser.token
        assert (await other.start()).json()["contact"] == started["contact"]
