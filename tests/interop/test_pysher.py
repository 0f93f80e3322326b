"""Pysher as published: receiving, and the end of its thread after a takeover."""

from __future__ import annotations

import pytest

from tests.interop.stage import QUIET_S, Stage

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("pysher")]


async def test_events_come_in_order_as_the_very_text_of_the_feed(stage: Stage) -> None:
    """Contract 6; decisions 5: fields that Pysher cannot send in the body are in the query string."""
    client = await stage.pysher("one")
    conversation = await stage.service.create(message={"text": "Grüße 👋"})
    await stage.service.do(conversation, "close")
    await stage.service.say(conversation, "Wait")
    feed = await stage.feed()
    await client.have(feed)
    assert client.events == feed
    assert await stage.holders() == [("one", True)]


async def test_a_takeover_ends_its_thread_for_good(stage: Stage) -> None:
    """Pusher protocol, close codes: Pysher uses the code in the message, not that of the close frame."""
    first = await stage.pysher("one")
    second = await stage.pysher("two")
    await first.error(4009)
    await first.until(lambda: first.told("ended"))
    await first.quiet(QUIET_S)
    assert stage.proxy.connections == 2
    sent = await stage.talk(3)
    await second.have(sent)
    assert (first.events, second.events) == ([], sent)
