"""Drafts and held messages where two nodes share a database: pages receive both, and each message is sent once."""

from __future__ import annotations

from tests.api.events.test_two_nodes import nodes
from tests.support.api.agent_stream import page as opened
from tests.support.api.service import Service
from tests.support.api.staff import code
from tests.support.api.writing import drafts, found, held, hold, texts, write

__all__ = ["nodes"]


async def test_page_at_another_node_receives_drafts_and_held_messages(
    nodes: tuple[Service, Service],
) -> None:
    here, there = nodes
    conversation = await here.create()
    long = "a word and " * 2_000  # more than a message on the bus may have
    async with opened(there.dashboard) as page:
        draft = (await write(here.dashboard, conversation, long))["draft"]
        told = {"conversationId": conversation["id"], "mode": "reply", "draft": draft}
        assert await page.passing("draft.updated") == told
        waiting = await hold(here.dashboard, conversation, "word " * 2_000)
        assert await page.passing("message.held") == {"heldMessage": waiting}
        found(await here.dashboard.delete(f"/held-messages/{waiting['id']}"))
        ended = await page.passing("message.held_ended")
        assert (ended["id"], ended["outcome"], ended["heldMessage"]) == (waiting["id"], "taken_back", None)
    assert (await drafts(there.dashboard, conversation))["reply"]["text"] == f"{long}\n\n{'word ' * 2_000}"


async def test_messages_held_at_either_node_are_sent_once_at_their_time(
    nodes: tuple[Service, Service],
) -> None:
    conversation = await nodes[0].create()
    async with opened(nodes[0].dashboard) as first, opened(nodes[1].dashboard) as second:
        waiting = [
            await hold(node.dashboard, conversation, f"{number}", seconds=1)
            for number, node in enumerate(nodes * 2)
        ]
        for page in (first, second):
            ended = [await page.passing("message.held_ended") for _ in waiting]
            assert {(each["id"], each["outcome"]) for each in ended} == {
                (each["id"], "sent") for each in waiting
            }
    assert sorted(await texts(nodes[1], conversation)) == ["0", "1", "2", "3"]
    assert await held(nodes[1].dashboard) == []


async def test_of_two_nodes_one_sends_a_message_and_the_other_answers_it(
    nodes: tuple[Service, Service],
) -> None:
    here, there = nodes
    conversation = await here.create()
    waiting = await hold(here.dashboard, conversation, "Once")
    path = f"/held-messages/{waiting['id']}"
    sent = [found(await node.dashboard.post(f"{path}/send", json={})) for node in nodes]
    assert sent[0]["id"] == sent[1]["id"] == waiting["id"]
    assert code(await there.dashboard.delete(path)) == (409, "already_sent")
    assert await texts(there, conversation) == ["Once"]
