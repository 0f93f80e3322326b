"""Checking a password takes the same work for each address (decisions 2)."""

from __future__ import annotations

from collections import Counter

import argon2
import pytest

from deskwire.engine.accounts.credentials import Passwords
from deskwire.engine.accounts.identity.dummy_hashes import cost_of_share, dummy_hash
from deskwire.engine.accounts.people import User
from deskwire.engine.core.errors import Unauthenticated


class Counting(argon2.PasswordHasher):
    """A real hasher that counts what it was asked to verify, by the work that this takes."""

    def __init__(self) -> None:
        super().__init__(memory_cost=8 * 1024)
        self.works: list[argon2.Parameters] = []

    def verify(self, hash: str | bytes, password: str | bytes) -> bool:  # type: ignore[override]  # noqa: A002
        """Verify as the base class does, and note the work."""
        self.works.append(argon2.extract_parameters(str(hash)))
        return super().verify(hash, password)


def test_every_failed_password_check_costs_and_reports_the_same() -> None:
    passwords = Passwords(8 * 1024)
    hasher = Counting()
    somebody = User(1, "usr_1", "a@b.example", "A", passwords.hash("right"))
    without = User(2, "usr_2", "c@d.example", "C", None)
    nobody = dummy_hash(passwords.cost)
    passwords._hasher = hasher
    said = set()
    for user in (None, without, somebody):
        with pytest.raises(Unauthenticated) as refusal:
            passwords.check(user, "wrong", nobody)
        said.add((refusal.value.reason, refusal.value.detail))
    assert len(said) == 1
    assert len(hasher.works) == 3
    assert hasher.works[1:] == hasher.works[:-1]
    assert passwords.check(somebody, "right", nobody) is somebody


def test_cost_is_the_beginning_of_the_hashes() -> None:
    passwords, before = Passwords(8 * 1024), Passwords(16 * 1024)
    assert passwords.hash("x").startswith(passwords.cost)
    assert passwords.cost != before.cost
    assert [
        passwords.is_of_today(User(1, "usr_1", "a@b.example", "A", hashed))
        for hashed in (passwords.hash("x"), before.hash("x"), None)
    ] == [True, False, False]


OLD, NEW = Passwords(8 * 1024).cost, Passwords(16 * 1024).cost


@pytest.mark.parametrize(("old", "new"), [(0, 0), (0, 5), (5, 0), (3, 1), (1, 9)])
def test_addresses_without_accounts_share_the_costs_in_the_accounts_proportions(old: int, new: int) -> None:
    costs = {cost: count for cost, count in ((OLD, old), (NEW, new)) if count}
    shares = [(2 * number + 1) << 53 for number in range(1_024)]  # evenly over 2**64
    found = Counter(cost_of_share(costs, NEW, share) for share in shares)
    assert found[OLD] == round(1_024 * old / (old + new or 1))
    assert found[OLD] + found[NEW] == 1_024


def test_an_address_goes_over_to_todays_cost_once_and_never_back() -> None:
    for share in range(0, 1 << 64, 1 << 58):
        seen = [cost_of_share({OLD: 10 - moved, NEW: moved}, NEW, share) for moved in range(11)]
        assert seen == sorted(seen, key=[OLD, NEW].index)
        assert seen[-1] == NEW
