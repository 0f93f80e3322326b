"""Failed attempts at signing in are counted by account, by network, and by both."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack

import pytest

from deskwire.engine.accounts.identity import throttle as module
from deskwire.engine.accounts.identity.throttle import (
    CODES_PER_ACCOUNT,
    PER_ACCOUNT,
    PER_NETWORK,
    PER_PAIR,
    SignInThrottle,
)
from deskwire.engine.core.errors import TooManyRequests, Unauthenticated, Unavailable

HERE, THERE = "192.0.2.1", "192.0.2.2"
REFILL_S = 90.0


class Guessing:
    """A throttle, and the time by which it goes."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.throttle = SignInThrottle(lambda: self.now)

    def fails(self, count: int = 1, email: str | None = "a@b.example", network: str | None = HERE) -> int:
        """Return how many of these failing attempts the throttle admits."""
        return sum(self._fails(email, network) for _ in range(count))

    def fail_all(self, emails: Iterable[str], network: str | None = HERE) -> int:
        """Return how many attempts the throttle admits, with one at each of these accounts."""
        return sum(self._fails(email, network) for email in emails)

    def succeeds(self, email: str | None = "a@b.example", network: str | None = HERE) -> bool:
        """Return whether an attempt with the right password succeeds."""
        try:
            with self.throttle.attempt(email, network):
                return True
        except TooManyRequests:
            return False

    def _fails(self, email: str | None, network: str | None) -> bool:
        try:
            with self.throttle.attempt(email, network):
                raise Unauthenticated("wrong")
        except TooManyRequests:
            return False
        except Unauthenticated:
            return True


def users(count: int) -> list[str]:
    """Return the addresses of that many accounts."""
    return [f"user{number}@b.example" for number in range(count)]


def test_failures_of_a_network_at_one_account_are_limited_separately() -> None:
    guessing = Guessing()
    assert guessing.fails(50) == PER_PAIR
    assert guessing.fails(1, "A@B.example") == 0
    assert guessing.fails(1, "other@b.example") == 1
    assert guessing.fails(1, network=THERE) == 1


def test_an_attempt_comes_back_with_time_and_the_refusal_says_when() -> None:
    guessing = Guessing()
    guessing.fails(PER_PAIR)
    guessing.now += 30.5
    with pytest.raises(TooManyRequests) as refused, guessing.throttle.attempt("a@b.example", HERE):
        pass
    assert refused.value.retry_after_s == 60
    guessing.now += 60
    assert guessing.fails(50) == 1
    guessing.now += 900
    assert guessing.fails(50) == PER_PAIR


def test_many_networks_together_may_fail_at_an_account_only_so_often() -> None:
    guessing = Guessing()
    let_in = sum(guessing.fails(PER_PAIR, network=f"192.0.2.{number}") for number in range(50))
    assert let_in == PER_ACCOUNT


def test_failures_of_a_network_at_all_accounts_are_limited() -> None:
    assert Guessing().fail_all(users(500)) == PER_NETWORK


def test_a_proxy_on_this_machine_is_not_counted_as_one_caller() -> None:
    assert Guessing().fail_all(users(500), network=None) == 500


def test_repeated_successful_sign_ins_are_never_throttled() -> None:
    guessing = Guessing()
    assert all(guessing.succeeds() for _ in range(500))
    assert guessing.fails(50) == PER_PAIR


def test_success_resets_the_failures_before_it() -> None:
    guessing = Guessing()
    for _ in range(30):
        assert guessing.fails(PER_PAIR - 1) == PER_PAIR - 1
        assert guessing.succeeds()


def test_attempts_side_by_side_do_not_slip_through() -> None:
    guessing = Guessing()
    with ExitStack() as under_way:
        for _ in range(PER_PAIR):
            under_way.enter_context(guessing.throttle.attempt("a@b.example", HERE))
        assert guessing.fails(1) == 0
        assert guessing.fails(1, "other@b.example") == 1
    assert guessing.fails(50) == PER_PAIR  # none of those has failed


def test_attempt_that_was_not_made_does_not_count() -> None:
    guessing = Guessing()
    for _ in range(50):
        with pytest.raises(Unavailable), guessing.throttle.attempt("a@b.example", HERE):
            raise Unavailable("busy")
    assert guessing.fails(50) == PER_PAIR


@pytest.mark.thorough
def test_failures_are_not_forgotten_however_many_other_accounts_are_made_up() -> None:
    """Keep the counters: an attacker who makes up enough keys could flush counters that make room for others."""
    guessing, strangers = Guessing(), 30_000
    guessing.fails(PER_PAIR)
    guessing.fails(PER_PAIR, network=None)
    assert guessing.fail_all(users(strangers), network=None) > strangers * 0.9
    guessing.fail_all(users(strangers), network=THERE)
    for number in range(strangers):
        guessing.fails(1, f"user{number}@b.example", f"2001:db8:{number >> 8:x}:{number & 255:x}::/64")
    assert guessing.fails(1) == 0
    assert guessing.fails(1, network=None) == 0


def test_throttle_takes_constant_memory() -> None:
    guessing = Guessing()
    sketches = (guessing.throttle._pairs, guessing.throttle._accounts, guessing.throttle._networks)
    before = sum(each.size for each in sketches)
    guessing.fail_all(users(1_000), network=None)
    assert sum(each.size for each in sketches) == before == 6 << 20
    assert not guessing.throttle._known
    assert not guessing.throttle._under_way


def test_attempts_after_a_refusal_use_up_only_the_networks_own_limit() -> None:
    guessing = Guessing()
    guessing.fails(PER_NETWORK)  # ten are tried, the others are refused
    assert guessing.fails(1, "other@b.example") == 0
    assert guessing.fails(PER_PAIR, network=THERE) == PER_PAIR  # of the account ten have failed
    guessing.now += REFILL_S
    guessing.fails(1_000)
    assert guessing.succeeds(network="192.0.2.3")


def test_user_who_has_signed_in_from_a_network_is_not_locked_out() -> None:
    guessing = Guessing()
    assert guessing.succeeds()
    for number in range(50):  # from everywhere, at this account
        guessing.fails(PER_PAIR, network=f"198.51.100.{number}")
    guessing.fail_all(users(500))  # and from the same network, at all others
    assert not guessing.succeeds(network=THERE)
    assert not guessing.succeeds("new@b.example")
    assert guessing.succeeds()
    assert guessing.fails(50) == PER_PAIR  # with no more guesses at the account than from elsewhere
    assert not guessing.succeeds()
    guessing.now += REFILL_S
    assert guessing.succeeds()


def test_known_sign_ins_are_bounded_and_evicted_ones_count_as_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "KNOWN_MAX", 2)
    guessing = Guessing()
    assert guessing.succeeds()
    assert guessing.fails(PER_PAIR) == PER_PAIR
    for email in users(2):
        assert guessing.succeeds(email, THERE)
    assert len(guessing.throttle._known) == 2
    assert guessing.fails(1) == 0  # its failures are not forgotten with it


def test_attempts_without_an_account_are_limited_by_network_alone() -> None:
    """Failures with passkeys, which name no account, must not keep others from signing in with theirs."""
    guessing = Guessing()
    guessing.throttle = SignInThrottle(lambda: guessing.now, CODES_PER_ACCOUNT)
    networks = [f"192.0.2.{number}" for number in range(50)]
    assert all(guessing.fails(5, None, network) == 5 for network in networks)
    assert guessing.succeeds(None, "198.51.100.1")
    assert guessing.fails(200, None, THERE) == PER_NETWORK - 5
    assert guessing.fails(200, None, None) == 200, "a proxy on this machine stands for any network"
    assert guessing.succeeds("a@b.example", "198.51.100.1")
