"""Machine credentials: create, rotate, revoke, and use before and after (ADR 70)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from tests.model.commands import Answer, Request, stopped
from tests.model.things import JSON, Machine, exactly
from tests.model.tickets import MakeTicket
from tests.model.world import World

NO_MACHINE: Final = "mcr_01M3250V00PPPPPPPPPPPPPPPP"
NO_SECRET: Final = f"mk_{'0' * 43}"

Which = Literal["current", "previous", "ended"]
"""A secret of a credential: the current one, the one before it, or an older one."""


def good_machine(told: JSON, machine: Machine, secret: str | None = None) -> None:
    """Assert that the credential is shown with these fields, its secret masked unless it is new."""
    names = ("id", "permissions", "secret", "name")
    wanted = [machine.id, machine.permissions, secret or f"mk_…{machine.secret[-4:]}", "model"]
    assert exactly(wanted, [told[name] for name in names]), (machine, told)
    assert (told["revokedAt"] is not None) is machine.revoked, told
    assert (told["previousExpiresAt"] is not None) is machine.overlaps, told


@dataclass(frozen=True)
class MakeMachine:
    """Create a credential with these permissions."""

    permissions: tuple[str, ...] = ("tickets.manage",)

    def request(self, world: World) -> Request:
        body = {"name": "model", "permissions": list(self.permissions)}
        return Request("POST", f"/projects/{world.project}/credentials", body, agent=True)

    def judge(self, world: World, answer: Answer) -> None:
        assert answer.status == 200, answer
        made = Machine(answer.body["id"], sorted(self.permissions), answer.body["secret"])
        assert made.secret.startswith("mk_")
        good_machine(answer.body, made, made.secret)
        world.machines.append(made)


@dataclass(frozen=True)
class OnMachine:
    """A command on the credential at this index, or on an unknown one if the index is not in use."""

    at: int

    def target(self, world: World) -> Machine | None:
        """Return the credential; None if it never existed."""
        return world.machines[self.at] if 0 <= self.at < len(world.machines) else None

    def path(self, world: World, tail: str = "") -> str:
        found = self.target(world)
        return f"/projects/{world.project}/credentials/{NO_MACHINE if found is None else found.id}{tail}"

    def reasons(self, found: Machine | None) -> Iterator[tuple[int, str]]:
        """Yield each refusal that the call may get."""
        if found is None:
            yield 404, "credential_not_found"

    def judge(self, world: World, answer: Answer) -> None:
        found = self.target(world)
        if not stopped(answer, *self.reasons(found)):
            assert found is not None
            assert answer.status == 200, answer
            self.carry_out(found, answer)

    def carry_out(self, found: Machine, answer: Answer) -> None:
        """Apply the command to a credential that exists; the default changes nothing."""
        good_machine(answer.body, found)


@dataclass(frozen=True)
class LookAtMachine(OnMachine):
    """Fetch a credential."""

    def request(self, world: World) -> Request:
        return Request("GET", self.path(world), agent=True)


@dataclass(frozen=True)
class Rotate(OnMachine):
    """Rotate the secret; the previous one stays valid for the overlap."""

    overlap_s: int

    def request(self, world: World) -> Request:
        return Request("POST", self.path(world, "/rotate"), {"overlapSeconds": self.overlap_s}, agent=True)

    def reasons(self, found: Machine | None) -> Iterator[tuple[int, str]]:
        yield from super().reasons(found)
        if found is not None and found.revoked:
            yield 409, "credential_revoked"

    def carry_out(self, found: Machine, answer: Answer) -> None:
        found.ended += [found.previous] if found.previous is not None else []
        found.previous, found.secret = found.secret, answer.body["secret"]
        found.overlaps = self.overlap_s > 0
        assert found.secret not in (found.previous, *found.ended)
        good_machine(answer.body, found, found.secret)


@dataclass(frozen=True)
class Revoke(OnMachine):
    """Revoke the credential; it stays listed."""

    def request(self, world: World) -> Request:
        return Request("DELETE", self.path(world), agent=True)

    def carry_out(self, found: Machine, answer: Answer) -> None:
        found.revoked = True
        good_machine(answer.body, found)


@dataclass(frozen=True)
class ActAs(OnMachine):
    """Create a ticket with a secret of the credential."""

    which: Which = "current"

    def secret(self, found: Machine | None) -> str | None:
        """Return the secret; None if the credential has no such secret."""
        if found is None:
            return None
        ended = found.ended[-1] if found.ended else None
        return {"current": found.secret, "previous": found.previous, "ended": ended}[self.which]

    def request(self, world: World) -> Request:
        secret = self.secret(self.target(world)) or NO_SECRET
        return Request("POST", "/tickets", MakeTicket().body(world), secret=secret)

    def reasons(self, found: Machine | None) -> Iterator[tuple[int, str]]:
        if found is None or self.which == "ended" or self.secret(found) is None:
            yield 401, "invalid_machine_credential"
        elif found.revoked:
            yield 401, "revoked_machine_credential"
        elif self.which == "previous" and not found.overlaps:
            yield 401, "rotated_machine_credential"
        elif "tickets.manage" not in found.permissions:
            yield 403, "permission_denied"

    def judge(self, world: World, answer: Answer) -> None:
        found = self.target(world)
        if not stopped(answer, *self.reasons(found)):
            assert found is not None
            MakeTicket().made(world, answer, found.actor)
