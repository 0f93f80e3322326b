"""Machine credentials: the time until which each secret is valid, and the permissions that no caller can pass on."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import pytest

from deskwire.engine.accounts.machines import (
    Machine,
    check_grant,
    check_secret,
    hash_secret,
    is_machine,
    machine_view,
    new_secret,
    valid_until,
)
from deskwire.engine.accounts.people import Project
from deskwire.engine.core.errors import Forbidden, Unauthenticated
from deskwire.engine.core.values import replace

PROJECT = Project(1, "prj_1", 1, "Shop", "stream")
OLD, NEW, OLDEST = hash_secret("mk_old"), hash_secret("mk_new"), hash_secret("mk_oldest")
NEVER = Machine(1, "mcr_1", PROJECT, "CRM", frozenset({"tickets.read"}), OLD, "_old", "user", "usr_1", 0)
ROTATED = replace(NEVER, hash=NEW, generation=1, previous_hash=OLD, previous_expires_at=100)


@dataclass
class Stored:
    """A reader of one credential."""

    found: Machine | None

    def machine(self, machine_id: str) -> Machine | None:
        return self.found if self.found is not None and self.found.id == machine_id else None

    def key(self, key_id: str) -> None:
        """There is no server key."""


def until(machine: Machine | None, name: str, now: int = 0) -> float:
    return valid_until(Stored(machine), name, now)  # type: ignore[arg-type]  # all that it asks for


def refusal(machine: Machine, hashed: bytes, now: int) -> str:
    with pytest.raises(Unauthenticated) as refused:
        check_secret(machine, hashed, now)
    return refused.value.reason


def test_credential_without_an_end_stays_valid() -> None:
    assert check_secret(NEVER, OLD, 10**15) == "mcr_1.0"
    assert until(NEVER, "mcr_1.0", 10**15) == inf


def test_credential_is_valid_before_its_end_and_not_at_it() -> None:
    ending = replace(NEVER, expires_at=100)
    assert check_secret(ending, OLD, 99) == "mcr_1.0"
    assert refusal(ending, OLD, 100) == "expired_machine_credential"
    assert (until(ending, "mcr_1.0", 99), until(ending, "mcr_1.0", 100)) == (100, 0)


def test_revoked_credential_is_invalid_before_its_end_too() -> None:
    revoked = replace(ROTATED, revoked_at=1, expires_at=10**6)
    assert {refusal(revoked, OLD, 0), refusal(revoked, NEW, 0)} == {"revoked_machine_credential"}
    assert (until(revoked, "mcr_1.0"), until(revoked, "mcr_1.1")) == (0, 0)


def test_both_secrets_are_valid_during_the_overlap_and_the_new_one_afterwards() -> None:
    assert (check_secret(ROTATED, OLD, 99), check_secret(ROTATED, NEW, 99)) == ("mcr_1.0", "mcr_1.1")
    assert refusal(ROTATED, OLD, 100) == "rotated_machine_credential"
    assert check_secret(ROTATED, NEW, 100) == "mcr_1.1"


def test_authorizations_of_a_former_secret_end_with_the_overlap() -> None:
    assert (until(ROTATED, "mcr_1.0", 99), until(ROTATED, "mcr_1.0", 100)) == (100, 0)
    assert until(ROTATED, "mcr_1.1", 100) == inf
    sooner = replace(ROTATED, expires_at=50)
    assert (until(sooner, "mcr_1.0"), until(sooner, "mcr_1.1")) == (50, 50)


def test_a_secret_from_before_the_former_one_has_ended() -> None:
    twice = replace(ROTATED, generation=2, previous_hash=NEW, hash=OLDEST)
    assert (until(twice, "mcr_1.0"), until(twice, "mcr_1.1"), until(twice, "mcr_1.2")) == (0, 100, inf)
    assert until(twice, "mcr_1.3") == 0


def test_unknown_credential_gets_no_access() -> None:
    assert (until(None, "mcr_1.0"), until(NEVER, "mcr_2.0"), until(NEVER, "key_1")) == (0, 0, 0)
    assert (is_machine("mcr_1.0"), is_machine("key_1")) == (True, False)


def test_callers_can_not_pass_on_permissions_that_they_lack() -> None:
    check_grant(None, {"members.manage"})
    check_grant({"tickets.read", "tickets.manage"}, {"tickets.read"})
    with pytest.raises(Forbidden, match=r"members\.manage, surveys\.read") as refused:
        check_grant({"tickets.read"}, {"surveys.read", "tickets.read", "members.manage"})
    assert refused.value.reason == "permission_denied"


def test_the_secret_is_masked_unless_it_is_shown_this_once() -> None:
    assert machine_view(NEVER, 0)["secret"] == "mk_…_old"
    secret = new_secret()
    assert machine_view(NEVER, 0, secret=secret)["secret"] == secret
    assert secret.startswith("mk_")
    assert len(secret) == len(new_secret()) > 40


def test_end_of_the_former_secret_is_shown_until_it_has_passed() -> None:
    assert machine_view(NEVER, 0)["previousExpiresAt"] is None
    assert machine_view(ROTATED, 99)["previousExpiresAt"] == "1970-01-01T00:00:00.100Z"
    assert machine_view(ROTATED, 100)["previousExpiresAt"] is None
