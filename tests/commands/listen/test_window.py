"""The order of forwarding, and the place where a restart goes on: pure, over any order of responses."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from deskwire.commands.listen.feed import FeedEvent
from deskwire.commands.listen.window import SEQUENCES_MAX, SequenceTable, Window, WindowEvent


def event(
    number: int, conversation: str | None = "c", sequence: int | None = None, kind: str = "x"
) -> FeedEvent:
    return FeedEvent(f"evt_{number:04}", kind, conversation, sequence, b"")


def window() -> Window:
    return Window(None, SequenceTable({}, False))


def feed_of(choices: list[tuple[int, bool]]) -> list[tuple[FeedEvent, bool]]:
    """Draw events of a few conversations as the feed has them, and whether each is wanted."""
    last: dict[int, int] = defaultdict(int)
    made = []
    for number, (conversation, wanted) in enumerate(choices, 1):
        last[conversation] += 1
        made.append((event(number, f"c{conversation}", last[conversation]), wanted))
    return made


@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40),
    st.randoms(use_true_random=False),
)
def test_cursor_covers_only_finished_events_in_any_order_of_answers(
    choices: list[tuple[int, bool]], random: object
) -> None:
    pick = getattr(random, "randrange")  # noqa: B009  # hypothesis types it as object
    feed, held_window = feed_of(choices), window()
    for each, wanted in feed:
        (held_window.add if wanted else held_window.skip)(each)
    over = {each.id for each, wanted in feed if not wanted}
    order: dict[str | None, list[int | None]] = defaultdict(list)
    under_way: list[WindowEvent] = []
    while True:
        while (held := held_window.take()) is not None:
            assert held.event.ordering_key not in [each.event.ordering_key for each in under_way]
            assert held.previous == (order[held.event.conversation] or [0])[-1]
            order[held.event.conversation].append(held.event.sequence)
            under_way.append(held)
        if not under_way:
            break
        ended = under_way.pop(pick(len(under_way)))
        held_window.end(ended)
        over.add(ended.event.id)
        done = [each.id for each, _ in feed]
        covered = done[: done.index(held_window.after) + 1] if held_window.after else []
        assert set(covered) <= over
        assert len(held_window) == len(feed) - len(over)
    assert held_window.after == (feed[-1][0].id if feed else None)
    for conversation, sequences in order.items():
        wanted_ones = [each.sequence for each, w in feed if w and each.conversation == conversation]
        assert sequences == wanted_ones


def test_the_sequences_as_of_the_cursor_do_not_run_ahead_of_it() -> None:
    held_window = window()
    for number, conversation in enumerate("ab", 1):
        held_window.add(event(number, conversation, 1))
    first, second = held_window.take(), held_window.take()
    assert first is not None
    assert second is not None
    held_window.end(second)
    assert (held_window.after, held_window.sequences.last) == (None, {})
    held_window.end(first)
    assert (held_window.after, held_window.sequences.last) == ("evt_0002", {"a": 1, "b": 1})


@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=40),
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=4),
    st.randoms(use_true_random=False),
)
def test_restarts_forward_each_event_once_and_in_its_conversations_order(
    choices: list[tuple[int, bool]], runs: list[tuple[int, int]], random: object
) -> None:
    """Read some of the feed in each run and end some of it; the last run ends all."""
    pick = getattr(random, "randrange")  # noqa: B009  # hypothesis types it as object
    feed, was = feed_of(choices), window()
    forwarded: dict[str | None, list[int | None]] = defaultdict(list)
    for reads, ends in [*runs, (len(feed), len(feed))]:
        now = Window(was.after, SequenceTable(was.sequences.last, was.sequences.forgot), was.ahead)
        assert now.ahead == was.ahead
        was = now
        rest = [each for each in feed if was.after is None or each[0].id > was.after]
        for each, wanted in rest[:reads]:
            (was.add if wanted else was.skip)(each)
        under_way: list[WindowEvent] = []
        for _ in range(ends):
            while (held := was.take()) is not None:
                under_way.append(held)
            if under_way:
                ended = under_way.pop(pick(len(under_way)))
                assert ended.previous == (forwarded[ended.event.conversation] or [0])[-1]
                forwarded[ended.event.conversation].append(ended.event.sequence)
                was.end(ended)
    assert was.after == (feed[-1][0].id if feed else None)
    for conversation in {each.conversation for each, _ in feed}:
        wanted_ones = [each.sequence for each, wanted in feed if wanted and each.conversation == conversation]
        assert forwarded[conversation] == wanted_ones


def test_queue_after_a_failed_attempt_is_split_until_one_succeeds() -> None:
    held_window = window()
    for number in (1, 2, 3):
        held_window.add(event(number, "bad", number))
    held_window.add(event(4, "good", 1))
    bad, good = held_window.take(), held_window.take()
    assert bad is not None
    assert good is not None
    held_window.later(bad)
    held_window.end(good)
    assert (held_window.take(), held_window.take(troubled=True)) == (None, None)  # it pauses
    held_window.again(bad)
    assert (held_window.take(), held_window.take(troubled=True)) == (None, bad)
    held_window.end(bad, delivered=False)
    again = held_window.take(troubled=True)
    assert again is not None
    assert again.event.id == "evt_0002"
    held_window.end(again)
    last = held_window.take()
    assert last is not None
    assert last.event.id == "evt_0003"


def test_event_without_a_conversation_has_no_previous_sequence() -> None:
    held_window = window()
    held_window.add(event(1, None, None, "contact.updated"))
    held = held_window.take()
    assert held is not None
    assert held.previous is None


def test_sequence_table_evicts_the_oldest_conversation_and_reports_its_predecessor_as_unknown() -> None:
    sequences = SequenceTable({}, False)
    assert sequences.before(event(0, "c0", 7)) == 0
    for number in range(SEQUENCES_MAX + 1):
        sequences.note(event(number, f"c{number}", 7))
    assert len(sequences.last) == SEQUENCES_MAX
    assert sequences.before(event(1, "c0", 8)) is None
    assert sequences.before(event(1, "c1", 8)) == 7
    assert sequences.before(event(1, "new", 1)) == 0


def test_a_deleted_conversation_is_not_kept() -> None:
    sequences = SequenceTable({"c": 4}, False)
    sequences.note(event(1, "c", 5, "conversation.deleted"))
    assert sequences.last == {}
