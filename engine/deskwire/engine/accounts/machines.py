"""Machine credentials, which backends use in place of a user's access token (ADR 70).

A credential has one secret, and during a rotation two: the previous one is valid until `previous_expires_at`. Each call checks
these times against the clock, so no background work is needed.

A credential made by another one is its child. It has no permission that its parent lacks, expires no later, and is revoked in
the same commit as the parent.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Iterable, Iterator, Sequence
from math import inf
from typing import Any, Final, Literal, Protocol

from msgspec import Struct

from deskwire.engine.accounts.people import PERMISSIONS, GrantedRole, Project
from deskwire.engine.accounts.ports import OrganisationReader
from deskwire.engine.accounts.server_keys import key_in_force, random_base62
from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.core.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Problem,
    RefusedCredential,
    Unauthenticated,
)
from deskwire.engine.core.values import replace

SECRET_PREFIX: Final = "mk_"
"""Prefix of machine credentials' secrets, which distinguishes them from other credentials."""

MACHINES_MAX: Final = 100
"""Maximum number of valid machine credentials of a project."""

EVERY_PERMISSION: Final = frozenset[str]().union(*PERMISSIONS.values())
"""All permissions that a credential can have: those of all roles."""

OVERLAP_MAX_S: Final = 604_800
OVERLAP_S: Final = 86_400
"""Validity of the previous secret after a rotation: maximum and default."""

Maker = Literal["user", "machine", "operator"]

MakerState = Literal["active", "demoted", "left", "ended"]
"""The current state of the maker of a credential.

A user is `active` with all permissions of the credential, `demoted` without some of them, or has `left` the organisation. A
machine credential is `active` or `ended`. The operator is always `active`.
"""


class Machine(Struct, frozen=True):
    """A machine credential of a project.

    Only hashes of its secrets are stored. Times are in milliseconds.

    Args:
        tail: last characters of the secret.
        made_by, made_by_id: type and id of its maker. The operator has no id.
        expires_at: effective expiry: the earlier of `own_expires_at` and the parent's expiry.
        own_expires_at: requested expiry.
        generation: number of rotations.
        previous_hash, previous_expires_at: hash and expiry of the previous secret, None if there is none.
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
    own_expires_at: int | None = None

    @property
    def parent(self) -> str | None:
        """The id of the credential that made this one. None if a user or the operator made it."""
        return self.made_by_id if self.made_by == "machine" else None

    @property
    def authorizes_as(self) -> str:
        """The name of the current secret, under which it authorizes long-lived objects such as streams; see `valid_until`."""
        return f"{self.id}{_GENERATION}{self.generation}"


_GENERATION: Final = "."


class MachineReader(Protocol):
    """Queries on machine credentials. Ids are storage keys unless said otherwise."""

    def machine_with(self, secret_hash: bytes) -> Machine | None:
        """Return the credential with this hash of its current or previous secret, including revoked ones."""

    def machine(self, machine_id: str) -> Machine | None:
        """Return the credential with this public id, of any project."""

    def machines(self, project: int, before: int, limit: int) -> Sequence[Machine]:
        """Return a project's credentials, newest first, with storage keys smaller than `before`."""

    def machines_in_force(self, project: int, at: int) -> int:
        """Count a project's credentials that are neither revoked nor expired at this time (ms)."""

    def next_machine_end(self, after: int) -> int | None:
        """Return the next time after this one (ms) at which a credential of any project expires."""

    def child_machines(self) -> Sequence[Machine]:
        """Return the unrevoked credentials, of all projects, that were made by other ones, oldest first."""

    def machines_made_by(self, machine: Machine) -> Sequence[Machine]:
        """Return the credentials that this one has made, including revoked ones, oldest first."""


class MachineTransaction(MachineReader, Protocol):
    """Changes of machine credentials."""

    def lock_across_nodes(self) -> None:
        """Block other nodes that call this until this transaction ends."""

    def insert_machine(self, machine: Machine) -> None:
        """Store a new credential. Its `rowid` is ignored."""

    def save_machine(self, machine: Machine) -> None:
        """Store a credential's name, permissions and end."""

    def rotate_machine(self, machine: Machine, overlap_s: int) -> None:
        """Store the new and previous secret of a credential.

        `overlap_s` is recorded in the audit trail.
        """

    def revoke_machine(self, machine: int, at: int) -> None:
        """Revoke a credential at `at` (ms)."""

    def touch_machine(self, machine: int, at: int) -> None:
        """Store the time (ms) at which a credential was last used."""


class CredentialReader(OrganisationReader, MachineReader, Protocol):
    """Queries on server keys and machine credentials."""


class CredentialManager(Struct, frozen=True):
    """A caller that manages credentials.

    Functions take None for the operator at the command line.

    Args:
        permissions: permissions of the caller.
        machine: id of the calling machine credential, None for a user.
    """

    permissions: frozenset[str]
    machine: str | None = None


def new_secret() -> str:
    """Return a new secret. It is shown once, and only its hash is stored."""
    return f"{SECRET_PREFIX}{random_base62()}"


def hash_secret(secret: str) -> bytes:
    """Return the SHA-256 of a secret, which is stored.

    It needs no salt because the secret is random.
    """
    return hashlib.sha256(secret.encode()).digest()


def machine_by_secret(reader: MachineReader, hashed: bytes) -> Machine:
    """Return the credential with this hash of its current or previous secret.

    Raises Unauthenticated if there is none.
    """
    machine = reader.machine_with(hashed)
    if machine is None:
        raise Unauthenticated("The machine credential is not known.", code="invalid_machine_credential")
    return machine


def check_secret(machine: Machine, hashed: bytes, now: int) -> str:
    """Check that a secret is valid.

    Return the name under which it authorizes long-lived objects; see `valid_until`.

    Raises Unauthenticated if the credential is revoked or expired, or if the secret is a previous one after its overlap.
    """
    check_in_force(machine, now)
    if hmac.compare_digest(machine.hash, hashed):
        return machine.authorizes_as
    if machine.previous_expires_at is None or machine.previous_expires_at <= now:
        raise Unauthenticated(
            "This secret of the machine credential was replaced by a rotation, and its overlap is over.",
            code="rotated_machine_credential",
        ).of(_shown(machine))
    return replace(machine, generation=machine.generation - 1).authorizes_as


def check_in_force(machine: Machine, now: int) -> None:
    """Raise Unauthenticated if a credential is revoked or has expired."""
    if machine.revoked_at is not None:
        detail = "The machine credential has been revoked."
        raise Unauthenticated(detail, code="revoked_machine_credential").of(_shown(machine))
    if machine.expires_at is not None and machine.expires_at <= now:
        detail = "The machine credential has expired."
        raise Unauthenticated(detail, code="expired_machine_credential").of(_shown(machine))


def _shown(machine: Machine) -> RefusedCredential:
    return RefusedCredential("machine", machine.id, machine.project.rowid)


def valid_until(reader: CredentialReader, name: str, now: int, permission: str | None = None) -> float:
    """Return the time (ms) until which an authorization stays valid: 0 if it has ended, `inf` without an end.

    Args:
        name: id of a server key, or a machine credential's name from `check_secret`.
        permission: permission that the machine credential must still have.
    """
    machine_id, _, generation = name.partition(_GENERATION)
    if not generation:
        return inf if key_in_force(reader, name) else 0
    machine = reader.machine(machine_id)
    if machine is None or machine.revoked_at is not None:
        return 0
    if permission is not None and permission not in machine.permissions:
        return 0
    ends: list[float] = [inf if machine.expires_at is None else machine.expires_at]
    if generation != str(machine.generation):
        previous = generation == str(machine.generation - 1)
        ends.append(machine.previous_expires_at or 0 if previous else 0)
    end = min(ends)
    return end if now < end else 0


def check_still_valid(reader: MachineReader, name: str, permissions: Iterable[str], now: int) -> None:
    """Check the machine credential of a long-running call again.

    Args:
        name: name from `check_secret` at the start of the call.
        permissions: permissions that the call needs.

    Raises Unauthenticated if the credential has ended, Forbidden if it has lost a permission.
    """
    machine = machine_of(reader, name.partition(_GENERATION)[0], None)
    check_in_force(machine, now)
    lacking = sorted({*permissions} - machine.permissions)
    if lacking:
        raise Forbidden(f"The machine credential no longer has the permission {', '.join(lacking)}.")


def is_machine(name: str) -> bool:
    """Return whether an authorization's name belongs to a machine credential, not to a server key."""
    return _GENERATION in name


def make_machine(tx: MachineTransaction, machine: Machine, by: CredentialManager | None = None) -> Machine:
    """Store a new credential.

    If a machine credential makes it, it expires no later than its maker.

    Raises Conflict (`credential_limit_reached`), Forbidden, and Unauthenticated if the maker has just ended.
    """
    tx.lock_across_nodes()
    parent = _parent(tx, machine)
    if parent is not None:
        check_in_force(parent, machine.created_at)
        check_grant(parent.permissions, machine.permissions)
    _check_manager(by, machine.permissions)
    if tx.machines_in_force(machine.project.rowid, machine.created_at) >= MACHINES_MAX:
        raise Conflict(
            f"A project has at most {MACHINES_MAX} machine credentials in force; revoke one first.",
            code="credential_limit_reached",
        )
    tx.insert_machine(_within(machine, parent))
    return machine_of(tx, machine.id, machine.project)


def change_machine(
    tx: MachineTransaction, machine_id: str, project: Project, by: CredentialManager | None, **fields: Any
) -> Machine:
    """Change fields of a credential, and restrict its children accordingly.

    Return the credential.

    Raises the errors of `changeable`, Forbidden, and Invalid for permissions that its parent lacks.
    """
    tx.lock_across_nodes()
    before = changeable(tx, machine_id, project, by)
    if "expires_at" in fields:
        fields["own_expires_at"] = fields.pop("expires_at")
    after = replace(before, **fields)
    if by is not None and by.machine == before.id and after.own_expires_at != before.own_expires_at:
        raise Forbidden("A machine credential can't change its own end; a person can.")
    _check_manager(by, after.permissions)
    parent = _parent(tx, after)
    if parent is not None:
        _check_within(parent, after)
    after = _within(after, parent)
    if after != before:
        tx.save_machine(after)
        _restrict_descendants(tx, after)
    return after


def rotate_machine(
    tx: MachineTransaction,
    machine_id: str,
    project: Project | None,
    by: CredentialManager | None,
    secret: str,
    *,
    at: int,
    overlap_s: int,
) -> Machine:
    """Give a credential a new secret.

    The current one stays valid for `overlap_s`. Raises the errors of `changeable`.

    A previous secret that is still valid ends at once, so that there are never more than two. The expiry of the credential does
    not change.
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


def revoke_machine(
    tx: MachineTransaction,
    machine_id: str,
    project: Project | None,
    at: int,
    by: CredentialManager | None = None,
) -> Sequence[Machine]:
    """Revoke a credential and its descendants, unless they are revoked already.

    Returns the credential, then the descendants revoked here. Raises NotFound, and Forbidden if the credential has a permission
    that the caller lacks.
    """
    tx.lock_across_nodes()
    machine = machine_of(tx, machine_id, project)
    _check_manager(by, machine.permissions)
    ended = [each for each in (machine, *_descendants(tx, machine)) if each.revoked_at is None]
    for each in ended:
        tx.revoke_machine(each.rowid, at)
    return [machine_of(tx, machine_id, project), *(each for each in ended if each.id != machine.id)]


def restrict_children(tx: MachineTransaction, at: int) -> int:
    """Restrict credentials of older versions to the permissions and expiry of their makers.

    Return the number of credentials changed.
    """
    tx.lock_across_nodes()
    changed = 0
    for child, parent in _exceeding_children(tx):
        changed += 1
        if parent is None:
            tx.revoke_machine(child.rowid, at)
        else:
            tx.save_machine(_bounded(child, parent))
    return changed


def has_unrestricted_children(reader: MachineReader) -> bool:
    """Return whether any credential exceeds the permissions or expiry of its maker."""
    return any(True for _ in _exceeding_children(reader))


def _exceeding_children(reader: MachineReader) -> Iterator[tuple[Machine, Machine | None]]:
    """Yield each credential that exceeds its maker, with the maker, or with None if the maker is revoked."""
    for child in reader.child_machines():
        parent = _parent(reader, child)
        if parent is None or parent.revoked_at is not None:
            yield child, None
        elif _bounded(child, parent) != child:
            yield child, parent


def _bounded(child: Machine, parent: Machine) -> Machine:
    """Return a credential restricted to the permissions and expiry of its parent."""
    return _within(replace(child, permissions=child.permissions & parent.permissions), parent)


def changeable(
    reader: MachineReader, machine_id: str, project: Project | None, by: CredentialManager | None
) -> Machine:
    """Return a credential that the caller may change. The operator may change any.

    Raises:
        NotFound: the project has no credential with this id.
        Conflict: the credential is revoked (`credential_revoked`).
        Forbidden: the credential has a permission that the caller lacks, which the caller would gain with a new secret. Or the
            caller is a machine credential that is neither this one nor its ancestor: its changes would outlive it.
    """
    machine = machine_of(reader, machine_id, project)
    _check_manager(by, machine.permissions)
    if by is not None and by.machine not in (None, machine.id, *_ancestors(reader, machine)):
        raise Forbidden(
            "A machine credential changes and rotates itself and those that it has made. Others are for people to change."
        )
    if machine.revoked_at is not None:
        raise Conflict(
            "The machine credential has been revoked; create another one.", code="credential_revoked"
        )
    return machine


def _check_manager(by: CredentialManager | None, permissions: Iterable[str]) -> None:
    check_grant(None if by is None else by.permissions, permissions)


def _parent(reader: MachineReader, machine: Machine) -> Machine | None:
    return None if machine.parent is None else reader.machine(machine.parent)


def _ancestors(reader: MachineReader, machine: Machine) -> Iterator[str]:
    """Yield the ids of the credential's ancestors, parent first."""
    parent = _parent(reader, machine)
    while parent is not None:
        yield parent.id
        parent = _parent(reader, parent)


def _descendants(reader: MachineReader, machine: Machine) -> Iterator[Machine]:
    """Yield the credential's descendants, each after its parent."""
    for child in reader.machines_made_by(machine):
        yield child
        yield from _descendants(reader, child)


def _within(machine: Machine, parent: Machine | None) -> Machine:
    """Return the credential with its effective expiry: the requested one, or its parent's if that is earlier."""
    ends = (machine.own_expires_at, None if parent is None else parent.expires_at)
    return replace(machine, expires_at=min((end for end in ends if end is not None), default=None))


def _check_within(parent: Machine, machine: Machine) -> None:
    """Raise Invalid for permissions that the credential's parent lacks."""
    lacking = sorted(machine.permissions - parent.permissions)
    if lacking:
        message = f"The credential that has made this one, {parent.id}, does not have: {', '.join(lacking)}."
        raise Invalid(Problem("/permissions", "beyond_maker", message))


def _restrict_descendants(tx: MachineTransaction, machine: Machine) -> None:
    """Restrict the descendants of a changed credential to its permissions and expiry."""
    for child in tx.machines_made_by(machine):
        if child.revoked_at is None:
            after = _bounded(child, machine)
            if after != child:
                tx.save_machine(after)
                _restrict_descendants(tx, after)


def machine_of(reader: MachineReader, machine_id: str, project: Project | None) -> Machine:
    """Return the credential with this id, of this project if one is given.

    Raises NotFound (`credential_not_found`).
    """
    machine = reader.machine(machine_id)
    if machine is None or (project is not None and machine.project.rowid != project.rowid):
        raise NotFound("There is no such machine credential.", code="credential_not_found")
    return machine


def check_grant(by: Collection[str] | None, permissions: Iterable[str]) -> None:
    """Raise Forbidden if `permissions` has any that the caller's permissions `by` lack.

    None for the operator.
    """
    lacking = [] if by is None else sorted({*permissions} - {*by})
    if lacking:
        raise Forbidden(
            f"You can't give, change or revoke permissions that you do not have: {', '.join(lacking)}."
        )


def maker_state(reader: CredentialReader, machine: Machine, now: int) -> MakerState:
    """Return the current state of the maker of a credential."""
    if machine.made_by == "operator":
        return "active"
    if machine.made_by == "machine":
        parent = _parent(reader, machine)
        ended = parent is None or parent.revoked_at is not None or (parent.expires_at or inf) <= now
        return "ended" if ended else "active"
    user = None if machine.made_by_id is None else reader.user(machine.made_by_id)
    role = None if user is None else reader.role(machine.project.organisation, user.rowid)
    return state_of_user(machine.permissions, role)


def state_of_user(permissions: Iterable[str], role: GrantedRole | None) -> MakerState:
    """Return the state of a user as maker of a credential with these permissions.

    A role of None means `left`.
    """
    if role is None:
        return "left"
    return "active" if role.permissions.issuperset(permissions) else "demoted"


def machine_view(
    machine: Machine, now: int, maker: MakerState = "active", secret: str | None = None
) -> dict[str, Any]:
    """Return the credential object.

    The secret is masked unless it is given, at its creation or rotation.
    """
    previous = machine.previous_expires_at
    return {
        "id": machine.id,
        "projectId": machine.project.id,
        "name": machine.name,
        "permissions": sorted(machine.permissions),
        "secret": secret or f"{SECRET_PREFIX}…{machine.tail}",
        "createdAt": iso(machine.created_at),
        "createdBy": {"type": machine.made_by, "id": machine.made_by_id, "state": maker},
        "expiresAt": iso_or_none(machine.expires_at),
        "previousExpiresAt": iso(previous) if previous is not None and now < previous else None,
        "lastUsedAt": iso_or_none(machine.last_used_at),
        "revokedAt": iso_or_none(machine.revoked_at),
    }
