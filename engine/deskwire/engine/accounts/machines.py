"""Machine credentials: what a backend shows where a person would show an access token (ADR 70).

A credential has one secret, and while it is rotated two: the former one is good until `previous_expires_at`. Whether a
secret is good is found out by the clock with each call, so nothing has to be done when a time has come.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Iterable, Sequence
from math import inf
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import PERMISSIONS, Project
from deskwire.engine.accounts.ports import OrganisationReader
from deskwire.engine.accounts.server_keys import key_in_force, random_base62
from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.errors import Conflict, Forbidden, NotFound, Shown, Unauthenticated
from deskwire.engine.core.values import replace

SECRET_PREFIX: Final = "mk_"
"""The beginning of every machine credential's secret, and of no other credential."""

MACHINES_MAX: Final = 100
"""The machine credentials of a project that may be in force at once."""

EVERY_PERMISSION: Final = frozenset[str]().union(*PERMISSIONS.values())
"""What a credential may be given: all that any role has."""

OVERLAP_MAX_S: Final = 604_800
OVERLAP_S: Final = 86_400
"""How long the former secret is good after a rotation, at most and by default."""

Maker = Literal["user", "machine", "operator"]


class Machine(Struct, frozen=True):
    """A project's machine credential, of which only hashes are kept. Times are in milliseconds.

    Args:
        tail: the last characters of the secret.
        made_by, made_by_id: who has made it; an operator has no id.
        generation: grows with each rotation.
        previous_hash, previous_expires_at: the former secret's, None if there was none.
    """

    rowid: int
    id: str
    project: Project
    name: str
    permissions: frozenset[str]
    hash: bytes
    tail: str
    made_by: Maker
    made_by_id: str | None
    created_at: int
    expires_at: int | None = None
    last_used_at: int | None = None
    revoked_at: int | None = None
    generation: int = 0
    previous_hash: bytes | None = None
    previous_expires_at: int | None = None

    @property
    def authorizes_as(self) -> str:
        """The name under which the current secret authorizes what outlasts a call; see `good_until`."""
        return f"{self.id}{_GENERATION}{self.generation}"


_GENERATION: Final = "."


class MachineReader(Protocol):
    """Queries on machine credentials. Ids are storage keys unless said otherwise."""

    def machine_with(self, secret_hash: bytes) -> Machine | None:
        """Return the credential with this hash of its secret, or of its former one; revoked ones included."""

    def machine(self, machine_id: str) -> Machine | None:
        """Return the credential with this public id, of any project."""

    def machines(self, project: int, before: int, limit: int) -> Sequence[Machine]:
        """Return a project's credentials, newest first, with storage keys smaller than `before`."""

    def machines_in_force(self, project: int, at: int) -> int:
        """Count a project's credentials that are neither revoked nor expired at this time (ms)."""


class MachineTransaction(MachineReader, Protocol):
    """Changes of machine credentials."""

    def insert_machine(self, machine: Machine) -> None:
        """Store a new credential; its `rowid` is ignored."""

    def save_machine(self, machine: Machine) -> None:
        """Store a credential's name, permissions and end."""

    def rotate_machine(self, machine: Machine, overlap_s: int) -> None:
        """Store a credential's secrets, of which the former one is good for `overlap_s` more."""

    def revoke_machine(self, machine: int, at: int) -> None:
        """Let a credential be used no more, from `at` (ms) on."""

    def touch_machine(self, machine: int, at: int) -> None:
        """Note when a credential was last used."""


class StandingReader(OrganisationReader, MachineReader, Protocol):
    """Queries on what lets callers in that are no people."""


def new_secret() -> str:
    """Return a new secret; it is shown once and stored as its hash only."""
    return f"{SECRET_PREFIX}{random_base62()}"


def hash_secret(secret: str) -> bytes:
    """Return the SHA-256 of a secret, which is stored in its place. The secret is random, so that needs no salt."""
    return hashlib.sha256(secret.encode()).digest()


def machine_shown(reader: MachineReader, hashed: bytes) -> Machine:
    """Return the credential whose secret, current or former, has this hash. Raises Unauthenticated if there is none."""
    machine = reader.machine_with(hashed)
    if machine is None:
        raise Unauthenticated("The machine credential is not known.", code="invalid_machine_credential")
    return machine


def check_good(machine: Machine, hashed: bytes, now: int) -> str:
    """Return the name under which the secret with this hash authorizes what outlasts the call.

    Raises Unauthenticated if the credential is revoked or has expired, or if the secret is a former one whose time is over.
    """
    shown = Shown("machine", machine.id, machine.project.rowid)
    if machine.revoked_at is not None:
        detail = "The machine credential has been revoked."
        raise Unauthenticated(detail, code="revoked_machine_credential").of(shown)
    if machine.expires_at is not None and machine.expires_at <= now:
        detail = "The machine credential has expired."
        raise Unauthenticated(detail, code="expired_machine_credential").of(shown)
    if hmac.compare_digest(machine.hash, hashed):
        return machine.authorizes_as
    if machine.previous_expires_at is None or machine.previous_expires_at <= now:
        raise Unauthenticated(
            "This secret of the machine credential was replaced by a rotation, and its overlap is over.",
            code="rotated_machine_credential",
        ).of(shown)
    return replace(machine, generation=machine.generation - 1).authorizes_as


def good_until(reader: StandingReader, name: str, now: int) -> float:
    """Return until when (ms) something authorized under this name stands: 0 if it does no more, `inf` without an end.

    Args:
        name: the id of a server key, or what `check_good` has returned for a machine credential.
    """
    machine_id, _, generation = name.partition(_GENERATION)
    if not generation:
        return inf if key_in_force(reader, name) else 0
    machine = reader.machine(machine_id)
    if machine is None or machine.revoked_at is not None:
        return 0
    ends: list[float] = [inf if machine.expires_at is None else machine.expires_at]
    if generation != str(machine.generation):
        former = generation == str(machine.generation - 1)
        ends.append(machine.previous_expires_at or 0 if former else 0)
    end = min(ends)
    return end if now < end else 0


def is_machine(name: str) -> bool:
    """Tell whether a name that authorizes something is a machine credential's, and not a server key's."""
    return _GENERATION in name


def make_machine(tx: MachineTransaction, machine: Machine) -> Machine:
    """Store a new credential. Raises Conflict (`credential_limit_reached`)."""
    if tx.machines_in_force(machine.project.rowid, machine.created_at) >= MACHINES_MAX:
        raise Conflict(
            f"A project has at most {MACHINES_MAX} machine credentials in force; revoke one first.",
            code="credential_limit_reached",
        )
    tx.insert_machine(machine)
    return machine_of(tx, machine.id, machine.project)


def change_machine(
    tx: MachineTransaction, machine_id: str, project: Project, by: Collection[str] | None, **fields: Any
) -> Machine:
    """Change fields of a credential that is in force; return it. Raises as `changeable`, and Forbidden."""
    before = changeable(tx, machine_id, project, by)
    after = replace(before, **fields)
    check_grant(by, after.permissions)
    if after != before:
        tx.save_machine(after)
    return after


def rotate_machine(
    tx: MachineTransaction,
    machine_id: str,
    project: Project | None,
    by: Collection[str] | None,
    secret: str,
    *,
    at: int,
    overlap_s: int,
) -> Machine:
    """Give a credential a new secret; the one before is good for `overlap_s` more. Raises as `changeable`.

    One that was replaced before, and is still good, ends at once: there are never more than two.
    """
    before = changeable(tx, machine_id, project, by)
    after = replace(
        before,
        hash=hash_secret(secret),
        tail=secret[-4:],
        generation=before.generation + 1,
        previous_hash=before.hash,
        previous_expires_at=at + overlap_s * 1000,
    )
    tx.rotate_machine(after, overlap_s)
    return after


def revoke_machine(tx: MachineTransaction, machine_id: str, project: Project | None, at: int) -> Machine:
    """Revoke a credential, which no call can use from then on; one that is revoked stays as it is. Raises NotFound."""
    machine = machine_of(tx, machine_id, project)
    if machine.revoked_at is None:
        tx.revoke_machine(machine.rowid, at)
    return machine_of(tx, machine_id, project)


def changeable(
    reader: MachineReader, machine_id: str, project: Project | None, by: Collection[str] | None
) -> Machine:
    """Return a credential that whoever has the permissions `by` may change; the operator, None, may change any.

    Raises NotFound, Conflict (`credential_revoked`), and Forbidden for one that may do what `by` does not include: its
    secret would give that away.
    """
    machine = machine_of(reader, machine_id, project)
    check_grant(by, machine.permissions)
    if machine.revoked_at is not None:
        raise Conflict(
            "The machine credential has been revoked; create another one.", code="credential_revoked"
        )
    return machine


def machine_of(reader: MachineReader, machine_id: str, project: Project | None) -> Machine:
    """Return the credential with this id, of this project if one is given. Raises NotFound (`credential_not_found`)."""
    machine = reader.machine(machine_id)
    if machine is None or (project is not None and machine.project.rowid != project.rowid):
        raise NotFound("There is no such machine credential.", code="credential_not_found")
    return machine


def check_grant(by: Collection[str] | None, permissions: Iterable[str]) -> None:
    """Raise Forbidden if somebody with the permissions `by` would give away more than these."""
    if by is None:
        return
    lacking = sorted({*permissions} - {*by})
    if lacking:
        raise Forbidden(f"You can't pass on permissions that you do not have: {', '.join(lacking)}.")


def machine_view(machine: Machine, now: int, secret: str | None = None) -> dict[str, Any]:
    """Return the credential object; the secret is masked unless given, which it is once, when it is made."""
    previous = machine.previous_expires_at
    return {
        "id": machine.id,
        "projectId": machine.project.id,
        "name": machine.name,
        "permissions": sorted(machine.permissions),
        "secret": secret or f"{SECRET_PREFIX}…{machine.tail}",
        "createdAt": iso(machine.created_at),
        "createdBy": {"type": machine.made_by, "id": machine.made_by_id},
        "expiresAt": iso_or_none(machine.expires_at),
        "previousExpiresAt": iso(previous) if previous is not None and now < previous else None,
        "lastUsedAt": iso_or_none(machine.last_used_at),
        "revokedAt": iso_or_none(machine.revoked_at),
    }
