"""Slots for attempts to one endpoint: hanging attempts do not block prompt ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from deskwire.engine.webhooks.queue.limits import PROMPT_TIMEOUT_S, AttemptSlots


def test_attempts_start_up_to_the_number_of_slots() -> None:
    places = AttemptSlots(2, 0)
    assert (places.free, places.used) == (True, False)
    places.begin(1, 0.0)
    assert (places.free, places.used) == (True, True)
    places.begin(2, 0.0)
    assert not places.free
    places.end(1)
    assert places.free


def test_fewer_may_begin_while_the_slots_are_narrowed() -> None:
    places = AttemptSlots(2, 1)
    places.narrow(1)
    places.begin(1, 0.0)
    assert not places.free
    places.relieve(PROMPT_TIMEOUT_S)
    assert places.free  # a hanging attempt blocks nothing here either
    places.begin(2, PROMPT_TIMEOUT_S)
    places.narrow(3)
    assert places.free
    places.begin(3, PROMPT_TIMEOUT_S)
    assert not places.free


def test_an_attempt_unanswered_for_a_second_frees_its_slot() -> None:
    places = AttemptSlots(1, 1)
    places.begin(1, 10.0)
    assert places.relief_at() == 10.0 + PROMPT_TIMEOUT_S
    places.relieve(10.0 + PROMPT_TIMEOUT_S - 0.001)
    assert not places.free
    places.relieve(10.0 + PROMPT_TIMEOUT_S)
    assert (places.free, places.used, places.relief_at()) == (True, True, None)
    places.end(1)
    assert not places.used


def test_the_oldest_attempts_wait_up_to_the_limit() -> None:
    places = AttemptSlots(3, 2)
    for position in (1, 2, 3):
        places.begin(position, float(position))
    places.relieve(100.0)
    assert places.relief_at() is None
    places.begin(4, 100.0)
    places.begin(5, 100.0)
    assert not places.free
    places.end(1)
    assert places.relief_at() == 3.0 + PROMPT_TIMEOUT_S
    places.relieve(100.0)
    assert places.free


def test_no_place_moves_without_waiting_attempts() -> None:
    places = AttemptSlots(1, 0)
    places.begin(1, 0.0)
    places.relieve(100.0)
    assert (places.free, places.relief_at()) == (False, None)


@given(
    st.integers(1, 4),
    st.integers(0, 4),
    st.lists(st.tuples(st.sampled_from(["begin", "end", "relieve"]), st.integers(0, 20)), max_size=60),
)
def test_attempts_never_exceed_the_places_of_both_kinds(
    prompt: int, waiting: int, steps: list[tuple[str, int]]
) -> None:
    places, at, began = AttemptSlots(prompt, waiting), 0.0, dict[int, float]()
    for number, (step, amount) in enumerate(steps):
        at += amount / 10
        if step == "begin" and places.free:
            places.begin(number, at)
            began[number] = at
        elif step == "end" and began:
            position = sorted(began)[amount % len(began)]
            del began[position]
            places.end(position)
        elif step == "relieve":
            places.relieve(at)
            overdue = sum(since + PROMPT_TIMEOUT_S <= at for since in began.values())
            assert places.free or len(began) - min(overdue, waiting) >= prompt
        assert len(began) <= prompt + waiting
        assert places.used == bool(began)
