"""Channel names, and the events that each channel carries (decisions 5)."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from deskwire.engine.accounts.people import Project
from deskwire.engine.core.errors import Forbidden, Unavailable
from deskwire.engine.events.types import StoredEvent, Topic
from deskwire.engine.stream.channel import open_channel
from deskwire.engine.stream.subscription import Subscription
from tests.support.seeing import seen
from tests.support.streaming import CHANNEL, PROJECT_ID, JumpStore, Stage, next_batch, typing

PROJECT = Project(1, PROJECT_ID, 1, "Shop", "shop-stream")
CNV, OTHER_CNV = "cnv_01M3250V00CCCCCCCCCCCCCCCC", "cnv_01M3250V00DDDDDDDDDDDDDDDD"


def about(conversation: str, user_id: str) -> dict[str, Any]:
    return {"conversation": {"id": conversation, "contact": {"userId": user_id}}}


async def next_events(held: Subscription) -> list[StoredEvent]:
    while not (batch := await next_batch(held)).events:
        pass
    return list(batch.events)


@pytest.mark.parametrize(
    "name", [CHANNEL, f"private-conversation-{CNV}", "private-contact-user_1@example.org"]
)
def test_a_project_has_channels_for_itself_its_conversations_and_its_contacts(name: str) -> None:
    assert open_channel(PROJECT, name).name == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        "public",
        "private-project-",
        "private-project-prj_01M3250V00QQQQQQQQQQQQQQQQ",
        "private-conversation-msg_01M3250V00MMMMMMMMMMMMMMMM",
        "private-conversation-x",
        "private-contact-",
        "private-contact-a b",
        "private-contact-" + "x" * 150,
        f"{CHANNEL}\n",
        f"presence-project-{PROJECT_ID}",
        f"private-encrypted-project-{PROJECT_ID}",
        f"private-cache-project-{PROJECT_ID}",
    ],
)
def test_every_other_name_is_refused_in_the_same_words(name: str) -> None:
    """Decisions 5: anything else is refused at auth, 403 `unknown_channel`."""
    with pytest.raises(Forbidden) as refused:
        open_channel(PROJECT, name)
    assert refused.value.reason == "unknown_channel"


async def test_a_conversations_channel_carries_its_events_and_its_deletion_only(
    autojump_clock: MockClock, stage: Stage
) -> None:
    held = await stage.hold("c1", channel=f"private-conversation-{CNV}")
    await stage.announce("message.created", about(OTHER_CNV, "u1"))
    own = await stage.announce("message.created", about(CNV, "u1"))
    await stage.announce("contact.updated", {"contact": {"userId": "u1"}})
    gone = await stage.announce("conversation.deleted", {**about(CNV, "u1"), "reason": "gdpr"})
    assert await next_events(held) == [own, gone]


async def test_a_contacts_channel_carries_its_conversations_and_its_changes(
    autojump_clock: MockClock, stage: Stage
) -> None:
    held = await stage.hold("c1", channel="private-contact-u1")
    first = await stage.announce("message.created", about(CNV, "u1"))
    await stage.announce("message.created", about(OTHER_CNV, "u2"))
    second = await stage.announce("contact.updated", {"contact": {"userId": "u1"}})
    assert await next_events(held) == [first, second]


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (CHANNEL, True),
        (f"private-conversation-{CNV}", True),
        (f"private-conversation-{OTHER_CNV}", False),
        ("private-contact-u1", True),
        ("private-contact-u2", False),
    ],
)
async def test_typing_is_carried_by_its_project_its_conversation_and_its_contact(
    autojump_clock: MockClock, stage: Stage, name: str, wanted: bool
) -> None:
    held = await stage.hold("c1", channel=name, typing=True)
    event = typing(CNV, "u1")
    stage.hub.offer_ephemeral(event)
    got = None
    with trio.move_on_after(1):
        got = await held.next_typing()
    assert got == (event if wanted else None)


async def test_channels_are_held_and_taken_over_independently(
    autojump_clock: MockClock, stage: Stage
) -> None:
    project = await stage.hold("c1")
    contact = await stage.hold("c2", channel="private-contact-u1")
    assert project.current
    assert contact.current
    names = [status.channel for status in await stage.hub.consumers(stage.project)]
    assert names == ["private-contact-u1", CHANNEL]


async def test_events_of_other_channels_do_not_make_a_consumer_late(
    autojump_clock: MockClock, stage: Stage
) -> None:
    """Move the position of a quiet conversation's consumer with the log of its busy project."""
    held = await stage.hold("c1", channel="private-contact-u1")
    await stage.announce("message.created", about(CNV, "u2"))
    batch = await next_batch(held)
    assert (list(batch.events), batch.upto) == ([], stage.log.position(stage.project.rowid))


async def test_unused_contact_channel_is_deleted_with_its_events(
    autojump_clock: MockClock, stage: Stage, store: JumpStore
) -> None:
    """Delete the name, which contains the contact's id, even if a consumer once waited for the channel."""
    old = await stage.hold("c1", channel="private-contact-u1")
    await stage.hub.until_unfenced(old.channel, "c1")
    await stage.hold("c1", channel="private-contact-u2")
    await stage.hold("c1")
    stage.hub.leave(old, for_good=False)
    async with trio.open_nursery() as nursery:
        await nursery.start(stage.hub.run)
        for _ in range(8):
            await trio.sleep(86_000)  # virtual time: the mock clock jumps
        await trio.sleep(86_400 - 60)  # virtual time: the mock clock jumps
        nursery.cancel_scope.cancel()
    names = {row.channel for row in seen(store, lambda reader: reader.stream_consumers(stage.project.rowid))}
    assert names == {"private-contact-u2", CHANNEL}


async def in_memory(stage: Stage, topic: Topic) -> bool:
    """Return whether the topic is in memory, which a wait for its next event requires."""
    with trio.move_on_after(1) as scope:
        await stage.log.wait(topic, stage.log.position(stage.project.rowid))
    return scope.cancelled_caught


async def test_topic_of_a_channel_is_in_memory_only_while_it_is_held(
    autojump_clock: MockClock, stage: Stage, store: JumpStore
) -> None:
    """The same holds if the takeover fails. A reader that waits for a released channel returns."""
    lane = Topic(stage.project.rowid, "contact", "u1")
    store.write_failure = Unavailable("full")
    with pytest.raises(Unavailable):
        await stage.hold("c1", channel="private-contact-u1")
    assert not await in_memory(stage, lane)
    store.write_failure = None
    first = await stage.hold("c1", channel="private-contact-u1")
    second = await stage.hold("c2", channel="private-contact-u1")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(next_batch, second)
        await wait_all_tasks_blocked()
        stage.hub.leave(first, for_good=False)
        assert await in_memory(stage, lane)
        stage.hub.leave(second, for_good=True)
        stage.hub.leave(second, for_good=True)
    assert not await in_memory(stage, lane)


async def test_a_quiet_channel_is_resumed_without_a_gap_in_a_busy_project(
    autojump_clock: MockClock, stage: Stage
) -> None:
    """Take the age of a gap from the oldest missed event of the channel itself."""
    held = await stage.hold("c1", channel="private-contact-u1")
    stage.hub.confirm(held, (await stage.emit(1))[0].position)
    stage.hub.leave(held, for_good=False)
    await stage.emit(1)
    await trio.sleep(3 * 3600)  # virtual time: the mock clock jumps
    own = await stage.announce("conversation.deleted", about(CNV, "u1"))
    again = await stage.hold("c1", channel="private-contact-u1")
    assert not again.start.gap
    stage.hub.leave(again, for_good=False)
    await trio.sleep(3 * 3600)  # virtual time: the mock clock jumps
    late = await stage.hold("c1", channel="private-contact-u1")
    assert late.start.gap
    assert own.position <= late.start.position
