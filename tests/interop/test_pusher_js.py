"""pusher-js as published: authorizing, receiving, refusals, takeover."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from deskwire.engine.conversations.commands import ContactRef
from deskwire.engine.conversations.contacts import put_contact
from deskwire.engine.ports import Transaction
from tests.interop.client import Launch
from tests.interop.stage import LONG, QUIET_S, Stage, staged
from tests.support.api.service import tapping
from tests.support.stores import AnyStore
from tests.support.streaming import NOON

AWAY_S: Final = 60.0 if LONG else 2.0
"""pusher-js waits 1 s before it connects again."""


@pytest.fixture
def stores(monkeypatch: pytest.MonkeyPatch) -> list[AnyStore]:
    return tapping(monkeypatch)


pytestmark = [pytest.mark.long, pytest.mark.usefixtures("node")]


@pytest.mark.parametrize("authorization", ["form", "json", "query"])
async def test_events_come_in_order_with_the_bytes_of_the_feed(stage: Stage, authorization: str) -> None:
    """Contract 4.4 and 6; decisions 5: JSON, the clients' own form, and fields in the query string."""
    client = await stage.pusher_js("one", authorization)
    assert await client.subscribed() == {"resumedAfter": None, "gap": False}
    conversation = await stage.service.create(message={"text": "Grüße 👋\n\u2028"}, attributes={"n": 1.5})
    await stage.service.do(conversation, "close")
    await stage.service.say(conversation, "Wait")
    feed = await stage.feed()
    await client.have(feed)
    assert client.events == feed
    assert [each["type"] for each in client.told("event")] == [json.loads(each)["type"] for each in feed]
    assert await stage.holders() == [("one", True)]


async def test_the_largest_event_that_the_api_allows_arrives_whole(stage: Stage) -> None:
    """Decisions 8: 20,000 characters of text, here of 6 bytes each in JSON, with 16 KiB of attributes."""
    client = await stage.pusher_js("one")
    attributes = {"filler": "x" * (16 * 1024 - len('{"filler":""}'))}
    conversation = await stage.service.create(attributes=attributes)
    await stage.service.say(conversation, "a" + "\x01" * 19_999)
    feed = await stage.feed()
    assert len(feed[-1]) > 130_000
    await client.have(feed)
    assert client.events == feed


async def test_superseded_client_is_notified_and_does_not_reconnect(stage: Stage) -> None:
    """Decisions 5.4; Pusher protocol, close codes 4000 to 4099."""
    first = await stage.pusher_js("one")
    second = await stage.pusher_js("two")
    await first.error(4009)
    await first.state("disconnected")
    await first.quiet(QUIET_S)
    assert stage.proxy.connections == 2
    assert await stage.holders() == [("two", True)]
    sent = await stage.talk(3)
    await second.have(sent)
    assert (first.events, second.events) == ([], sent)
    assert "disconnected" not in second.states


async def test_superseded_client_without_a_notice_returns_once_and_idles(stage: Stage) -> None:
    """Decisions 5: a superseded id that returns is answered with 409 and left open."""
    first = await stage.pusher_js("one")
    (lost,) = stage.proxy.links
    lost.freeze()
    second = await stage.pusher_js("two")
    undisturbed = len(second.seen)
    lost.cut()
    assert await first.refused() == (409, "ConsumerSuperseded")
    await first.quiet(QUIET_S)
    assert stage.proxy.connections == 3
    assert len(second.seen) == undisturbed
    sent = await stage.talk(3)
    await second.have(sent)
    assert first.events == []

    await second.do("unsubscribe", channel=stage.channel)
    await first.error(4100)
    await first.subscribed(2)
    assert await stage.holders() == [("one", True)]


async def test_a_client_whose_key_is_revoked_stays_away(stage: Stage) -> None:
    """Pusher protocol, close codes 4000 to 4099: each reconnect would fail at its authorization."""
    client = await stage.pusher_js("one")
    keys = f"/projects/{stage.service.demo['projectId']}/keys"
    (key,) = (await stage.service.dashboard.get(keys)).json()["items"]
    assert (await stage.service.dashboard.post(f"{keys}/{key['id']}/revoke")).status_code == 200
    await client.error(4009)
    await client.state("disconnected")
    await client.quiet(QUIET_S)
    assert stage.proxy.connections == 1


async def test_an_unknown_key_ends_the_client_for_good(stage: Stage) -> None:
    """Pusher protocol, connecting: 4001."""
    client = await stage.pusher_js_that("one", key="unknown")
    await client.error(4001)
    await client.state("disconnected")
    await client.quiet(AWAY_S)
    assert stage.proxy.connections == 1


async def test_an_unsupported_protocol_ends_the_client_for_good(stage: Stage) -> None:
    """Pusher protocol, connecting: 4007; pusher-js always sends version 7, so the proxy rewrites it."""
    stage.proxy.rewrite = b"protocol=7", b"protocol=4"
    client = await stage.pusher_js_that("one")
    await client.error(4007)
    await client.state("disconnected")
    await client.quiet(AWAY_S)
    assert stage.proxy.connections == 1


async def test_a_refused_channel_leaves_the_client_connected(stage: Stage) -> None:
    """Decisions 5: an unknown channel is refused with 403 where it is authorized."""
    client = await stage.pusher_js_that("one", channel="private-secrets")
    assert await client.refused() == (403, "AuthError")
    assert client.states[-1] == "connected"
    await client.do("subscribe", channel=stage.channel)
    await client.subscribed()
    assert stage.proxy.connections == 1


async def test_fifteen_hundred_channels_at_once_are_all_authorized(
    stores: list[AnyStore], tmp_path: Path, launch: Launch
) -> None:
    """A 429 is final for pusher-js, so these calls have their own limit; the channels need 15 connections."""
    users = [f"u{number}" for number in range(1_500)]
    async with staged(tmp_path, launch, rate_limit_per_minute=60, rate_limit_burst=100) as stage:
        project = stage.service.demo["projectId"]

        def make(tx: Transaction) -> None:
            found = tx.project(project)
            assert found is not None
            for user in users:
                put_contact(tx, found, ContactRef(user, {}), NOON)

        await stores[0].write(make)
        client = await stage.launch("client.mjs")
        channels = [f"private-contact-{user}" for user in users]
        await client.do("crowd", **stage.options("one"), channels=channels, each=100)
        await client.until(lambda: len(client.told("subscribed") + client.told("refused")) == len(users), 120)
        assert client.told("refused") == []
        left = (await stage.service.http.get("/s2s/project")).headers["RateLimit-Remaining"]
        assert left == "99"


async def test_a_forged_authorization_is_refused_on_the_connection(stage: Stage) -> None:
    """Pusher protocol, messages: `pusher:subscription_error` from the server."""
    client = await stage.pusher_js_that("one", "forged")
    assert await client.refused() == (401, "AuthError")
    assert client.states[-1] == "connected"
    assert await stage.holders() == []
