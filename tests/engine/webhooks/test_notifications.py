"""Delivery notifications: in batches, limited, and free without viewers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from deskwire.engine.core.errors import Unavailable
from deskwire.engine.events.types import StoredEvent
from deskwire.engine.webhooks import notifications as module
from deskwire.engine.webhooks.delivery import Delivery
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.notifications import BATCH_INTERVAL_S, DeliveryNotifier
from deskwire.engine.webhooks.outcome import Outcome, SequenceRange
from tests.support.builders import NOON

ENDPOINT = Endpoint(1, "whk_1", 1, "https://crm.example.org/", frozenset(), b"", "tail", 0, 0)


@dataclass
class Stored:
    """A store in which every event was delivered; it fails `refusing` times."""

    refusing: int = 0
    reads: int = 0

    def endpoints(self, project: int | None = None) -> Sequence[Endpoint]:
        return [ENDPOINT]

    def conversation_id(self, conversation: int) -> str | None:
        return None if conversation == 404 else f"cnv_{conversation}"

    def outcomes(
        self, conversation: int, wanted: SequenceRange, before: tuple[int, int] | None, limit: int
    ) -> Sequence[Outcome]:
        assert wanted.first is not None
        assert wanted.first == wanted.last
        end = (None, 1, 204, None, NOON, NOON, None)
        return [Outcome(wanted.first, 1, wanted.first, f"evt_{wanted.first:026d}", NOON, "delivered", *end)]

    async def read(self, query: Any) -> Any:
        await trio.lowlevel.checkpoint()
        self.reads += 1
        if self.refusing:
            self.refusing -= 1
            raise Unavailable("not now", code="storage_failed")
        return query(self)


@dataclass
class Looking:
    """The viewers of these conversations."""

    at: set[str]
    told: list[tuple[float, str, int]] = field(default_factory=list)

    @property
    def has_viewers(self) -> bool:
        return bool(self.at)

    def viewed(self, project: int, conversation: str) -> bool:
        return project == 1 and conversation in self.at

    def tell(self, project: int, conversation: str, item: Mapping[str, Any]) -> None:
        self.told.append((trio.current_time(), conversation, item["sequence"]))


def delivery(sequence: int | None, conversation: int | None = 7, project: int = 1) -> Delivery:
    """Return a delivery of a conversation's event."""
    event = StoredEvent(1, "evt", "message.created", project, conversation, sequence, b"{}")
    return Delivery(1, "dlv", 1, event, conversation, 0, 0, 0, 0)


def news_of(stored: Stored, looking: Looking) -> DeliveryNotifier:
    """Return a notifier with that store and these viewers."""
    return DeliveryNotifier(stored, lambda: NOON, looking, looking.tell)  # type: ignore[arg-type]  # what it asks of them


async def after(notifier: DeliveryNotifier, seconds: float) -> None:
    """Run the notifier for this long."""
    with trio.move_on_after(seconds):
        await notifier.run()


async def test_no_changes_are_queued_without_viewers(autojump_clock: MockClock) -> None:
    stored, looking = Stored(), Looking(set())
    notifier = news_of(stored, looking)
    notifier.enqueue(delivery(1))
    looking.at.add("cnv_7")
    await after(notifier, 10)
    assert (stored.reads, looking.told) == (0, [])


async def test_attempts_of_an_event_are_gathered_to_one_piece_of_news(autojump_clock: MockClock) -> None:
    stored, looking = Stored(), Looking({"cnv_7"})
    notifier = news_of(stored, looking)
    for _ in range(5):
        notifier.enqueue(delivery(3))
    await after(notifier, 10)
    ((at, conversation, sequence),) = looking.told
    assert (conversation, sequence, stored.reads) == ("cnv_7", 3, 2)
    assert at >= BATCH_INTERVAL_S


async def test_a_burst_is_published_completely_at_a_limited_rate(autojump_clock: MockClock) -> None:
    looking = Looking({"cnv_7"})
    notifier = news_of(Stored(), looking)
    for sequence in range(1, 101):
        notifier.enqueue(delivery(sequence))
    await after(notifier, 60)
    assert [sequence for _, _, sequence in looking.told] == [*range(1, 101)]
    moments = [at for at, _, _ in looking.told]
    assert max(moments.count(at) for at in moments) <= 6
    assert moments[-1] - moments[0] >= 16 * BATCH_INTERVAL_S


async def test_viewers_of_other_conversations_get_nothing(autojump_clock: MockClock) -> None:
    looking = Looking({"cnv_8"})
    notifier = news_of(Stored(), looking)
    for each in (
        delivery(1),
        delivery(1, 404),
        delivery(1, 8, project=2),
        delivery(None, -5),
        delivery(9, None),
    ):
        notifier.enqueue(each)
    await after(notifier, 10)
    looking.at.add("cnv_7")
    await after(notifier, 10)
    assert looking.told == []


async def test_changes_beyond_the_queue_limit_are_ignored(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_QUEUE_MAX", 3)
    looking = Looking({"cnv_7"})
    notifier = news_of(Stored(), looking)
    for sequence in range(1, 10):
        notifier.enqueue(delivery(sequence))
    await after(notifier, 10)
    notifier.enqueue(delivery(20))
    await after(notifier, 10)
    assert [sequence for _, _, sequence in looking.told] == [1, 2, 3, 20]


async def test_news_that_could_not_be_read_waits(autojump_clock: MockClock) -> None:
    looking = Looking({"cnv_7"})
    notifier = news_of(Stored(refusing=2), looking)
    notifier.enqueue(delivery(1))
    await after(notifier, 10)
    assert [sequence for _, _, sequence in looking.told] == [1]
