"""Failed attempts at signing in are counted by account, by address, and by both."""

from __future__ import annotations

import pytest

from deskwire.engine.errors import TooManyRequests
from deskwire.engine.identity import throttle as module
from deskwire.engine.identity.throttle import PER_ACCOUNT, PER_ADDRESS, PER_PAIR, WINDOW_S, Throttle

HERE, THERE = "192.0.2.1", "192.0.2.2"


def failures(
    throttle: Throttle, count: int, email: str = "a@b.example", address: str | None = HERE, now: float = 0
) -> int:
    """How many of so many attempts are let in; all of them fail."""
    let_in = 0
    for _ in range(count):
        try:
            throttle.begin(email, address, now)
        except TooManyRequests:
            continue
        let_in += 1
    return let_in


def test_one_address_may_fail_at_one_account_so_often_and_elsewhere_still_try() -> None:
    throttle = Throttle()
    assert failures(throttle, 50) == PER_PAIR
    assert failures(throttle, 1, "A@B.example") == 0
    assert failures(throttle, 1, "other@b.example") == 1
    assert failures(throttle, 1, address=THERE) == 1


def test_the_window_ends_and_the_refusal_says_when() -> None:
    throttle = Throttle()
    failures(throttle, PER_PAIR, now=100)
    with pytest.raises(TooManyRequests) as refused:
        throttle.begin("a@b.example", HERE, 400.5)
    assert refused.value.retry_after_s == WINDOW_S - 300
    assert failures(throttle, 50, now=100 + WINDOW_S) == PER_PAIR


def test_many_addresses_together_may_fail_at_an_account_only_so_often() -> None:
    throttle = Throttle()
    let_in = sum(failures(throttle, PER_PAIR, address=f"192.0.2.{number}") for number in range(50))
    assert let_in == PER_ACCOUNT


def test_one_address_may_fail_at_all_accounts_together_only_so_often() -> None:
    throttle = Throttle()
    let_in = sum(failures(throttle, 1, f"user{number}@b.example") for number in range(500))
    assert let_in == PER_ADDRESS


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", None])
def test_a_proxy_on_this_machine_is_not_counted_as_one_caller(address: str | None) -> None:
    throttle = Throttle()
    let_in = sum(failures(throttle, 1, f"user{number}@b.example", address) for number in range(500))
    assert let_in == 500


def test_a_success_takes_its_attempt_back_everywhere() -> None:
    throttle = Throttle()
    for number in range(500):
        throttle.begin("a@b.example", HERE, number)
        throttle.succeeded("a@b.example", HERE)
    assert failures(throttle, 50, now=500) == PER_PAIR


def test_a_flood_of_accounts_takes_no_more_memory_than_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "COUNTERS_MAX", 100)
    throttle = Throttle()
    for number in range(1_000):
        throttle.begin(f"user{number}@b.example", None, 0)
    assert len(throttle._counters) == 100
