"""Checking a password takes the same work whoever is meant (decisions 2)."""

from __future__ import annotations

import argon2
import pytest

from deskwire.engine.credentials import Passwords
from deskwire.engine.errors import Unauthenticated
from deskwire.engine.people import User


class Counting(argon2.PasswordHasher):
    """A real hasher that counts what it was asked to verify, by the work that this takes."""

    def __init__(self) -> None:
        super().__init__(memory_cost=8 * 1024)
        self.works: list[argon2.Parameters] = []

    def verify(self, hash: str | bytes, password: str | bytes) -> bool:  # type: ignore[override]  # noqa: A002
        """As of the base."""
        self.works.append(argon2.extract_parameters(str(hash)))
        return super().verify(hash, password)


def test_an_unknown_user_one_without_a_password_and_a_wrong_password_cost_the_same_and_say_the_same() -> None:
    passwords = Passwords(8 * 1024)
    hasher = Counting()
    passwords._hasher = hasher
    somebody = User(1, "usr_1", "a@b.example", "A", passwords.hash("right"))
    without = User(2, "usr_2", "c@d.example", "C", None)
    said = set()
    for user in (None, without, somebody):
        with pytest.raises(Unauthenticated) as refusal:
            passwords.check(user, "wrong")
        said.add((refusal.value.reason, refusal.value.detail))
    assert len(said) == 1
    assert len(hasher.works) == 3
    assert hasher.works[1:] == hasher.works[:-1]
    assert passwords.check(somebody, "right") is somebody
