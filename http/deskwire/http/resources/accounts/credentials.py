"""Machine credentials of a project: created, listed, changed, rotated and revoked (ADR 70)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from deskwire.engine.accounts import machines
from deskwire.engine.accounts.machines import (
    EVERY_PERMISSION,
    OVERLAP_MAX_S,
    OVERLAP_S,
    CredentialManager,
    Machine,
    Maker,
    MakerState,
    hash_secret,
    machine_view,
    maker_state,
    new_secret,
)
from deskwire.engine.accounts.people import Project
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.ports import Reader, Transaction
from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.ownership import disable_lapsed
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query, given_fields, nulls, unique
from deskwire.http.api.pagination import page
from deskwire.http.api.routing import MEDIUM, Routes, Tag, fresh, in_project
from deskwire.http.resources.accounts.projects import ONE as PROJECT
from deskwire.http.resources.accounts.projects import found, rows_before
from deskwire.http.resources.accounts.requests import AccountList, Name
from deskwire.http.resources.fields import Time
from deskwire.http.schemas import people as shapes
from deskwire.http.schemas.base import page_of

_READ: Final = in_project("projects.manage")
_CHANGE: Final = fresh(_READ)
routes = Routes(
    Tag(
        "Machine credentials",
        "Give backends their own credential for the whole API: named, with permissions, rotated, and revoked at once.",
    ),
    _READ,
)
_ALL: Final = f"{PROJECT}/credentials"
_ONE: Final = f"{_ALL}/<credential_id>"
_NULLABLE: Final = frozenset({"expires_at"})


def _known(name: str) -> str:
    if name not in EVERY_PERMISSION:
        raise PydanticCustomError("unknown", "There is no such permission.")
    return name


Permission = Annotated[
    str,
    AfterValidator(_known),
    WithJsonSchema({"type": "string", "enum": sorted(EVERY_PERMISSION), "examples": ["tickets.manage"]}),
]
Permissions = Annotated[list[Permission], Field(max_length=len(EVERY_PERMISSION)), AfterValidator(unique)]


class CreateCredentialRequest(Body):
    """The new machine credential. `permissions` are those of roles. Without `expiresAt` it does not expire, or as late as the operator allows."""

    name: Name
    permissions: Permissions
    expires_at: Time | None = None


class ChangeCredentialRequest(Body):
    """The fields to change. `permissions` replaces all permissions. Null clears `expiresAt`, or sets the latest that the operator allows."""

    name: Name | None = None
    permissions: Permissions | None = None
    expires_at: Time | None = None


class RotateCredentialRequest(Body):
    """The time, in seconds, for which the previous secret remains valid besides the new one."""

    overlap_seconds: Annotated[int, Field(ge=0, le=OVERLAP_MAX_S)] = OVERLAP_S


async def _precheck_end(call: Call[Any, Query]) -> None:
    call.services.credential_life.end(call.body.expires_at, call.services.clock())


@routes.add(
    "GET",
    _ALL,
    operation_id="listCredentials",
    query=AccountList,
    answer=page_of(shapes.MachineCredential),
)
async def list_credentials(call: Call[Body, AccountList]) -> Answer:
    """List the machine credentials of a project, newest first, masked. Expired and revoked ones are included."""
    project, query, before = call.project.rowid, call.query, rows_before(call.query)
    now = call.services.clock()

    def find(reader: Reader) -> list[Described]:
        return [described(reader, each, now) for each in reader.machines(project, before, query.rows)]

    listed = await call.services.store.read(find)
    return page(query, listed, lambda each: machine_view(each[0], now, each[1]), lambda each: each[0].rowid)


@routes.add(
    "POST",
    _ALL,
    _CHANGE,
    operation_id="createCredential",
    body=CreateCredentialRequest,
    limit=MEDIUM,
    answer=shapes.MachineCredential,
    errors=("credential_limit_reached",),
    idempotent=True,
    further=(_precheck_end,),
    records=("credential.created",),
)
async def create_credential(call: Call[CreateCredentialRequest, Query]) -> Answer:
    """Create a machine credential. The response shows the secret once; a repeated request masks it.

    You can only give permissions that you have. A credential created by a machine credential is revoked together
    with it, and its `expiresAt` is at most that credential's.
    """
    now, secret, identifier = call.services.clock(), new_secret(), call.project.id
    expires_at = call.services.credential_life.end(call.body.expires_at, now)
    machine = new_machine(call.body, call.project, _maker(call), secret, now, expires_at)

    def make(tx: Any) -> Machine:
        found(tx, identifier)
        return machines.make_machine(tx, machine, manager(call))

    made = await call.services.store.write(call.around(make, lambda made: machine_view(made, now)))
    return machine_view(made, now, secret=secret)


@routes.add("GET", _ONE, operation_id="getCredential", answer=shapes.MachineCredential)
async def get_credential(call: Call[Body, Query]) -> Answer:
    """Fetch a machine credential, masked."""
    now = call.services.clock()

    def find(reader: Reader) -> Described:
        return described(reader, machines.machine_of(reader, _id(call), call.project), now)

    machine, maker = await call.services.store.read(InlineQuery(find))
    return machine_view(machine, now, maker)


@routes.add(
    "PATCH",
    _ONE,
    _CHANGE,
    operation_id="changeCredential",
    body=ChangeCredentialRequest,
    limit=MEDIUM,
    answer=shapes.MachineCredential,
    errors=("credential_revoked",),
    further=(nulls(*_NULLABLE), _precheck_end),
    records=("credential.changed", "webhook.disabled"),
)
async def change_credential(call: Call[ChangeCredentialRequest, Query]) -> Answer:
    """Change the name, permissions or expiry of a machine credential. The change applies from its next call.

    You can only change a credential whose permissions you have, before and after the change. A machine credential can change itself,
    except for its expiry, and the credentials that it has created, which lose the permissions that it loses.
    """
    given = given_fields(call.body, _NULLABLE)
    if "permissions" in given:
        given["permissions"] = frozenset(given["permissions"])
    now = call.services.clock()
    if "expires_at" in given:
        given["expires_at"] = call.services.credential_life.end(given["expires_at"], now)

    def change(tx: Transaction) -> tuple[Described, list[Endpoint]]:
        changed = machines.change_machine(tx, _id(call), call.project, manager(call), **given)
        return described(tx, changed, now), disable_lapsed(tx, call.project.rowid, now)

    (changed, maker), lapsed = await call.services.store.write(change)
    _stop(call, lapsed)
    return machine_view(changed, now, maker)


@routes.add(
    "POST",
    f"{_ONE}/rotate",
    _CHANGE,
    operation_id="rotateCredential",
    body=RotateCredentialRequest,
    answer=shapes.MachineCredential,
    errors=("credential_revoked",),
    idempotent=True,
    records=("credential.rotated",),
)
async def rotate_credential(call: Call[RotateCredentialRequest, Query]) -> Answer:
    """Give a machine credential a new secret, shown only once. The previous one remains valid for `overlapSeconds`.

    An even older secret ends at once, and so do the streams that it authorized. You can only rotate a
    credential whose permissions you have. A machine credential can rotate itself and the credentials that it has
    created. The expiry of the credential does not change.
    """
    now, secret, overlap_s = call.services.clock(), new_secret(), call.body.overlap_seconds

    def rotate(tx: Any) -> Described:
        machine = machines.rotate_machine(
            tx, _id(call), call.project, manager(call), secret, at=now, overlap_s=overlap_s
        )
        return described(tx, machine, now)

    kept = call.around(rotate, lambda each: machine_view(each[0], now, each[1]))
    rotated, maker = await call.services.store.write(kept)
    return machine_view(rotated, now, maker, secret)


@routes.add(
    "DELETE",
    _ONE,
    _CHANGE,
    operation_id="revokeCredential",
    answer=shapes.MachineCredential,
    records=("credential.revoked", "webhook.disabled"),
)
async def revoke_credential(call: Call[Body, Query]) -> Answer:
    """Revoke a machine credential. Its calls are refused, and the streams that it authorized end. It stays listed.

    The credentials that it has created are also revoked, and the webhook endpoints that belong to them are disabled. You
    can only revoke a credential whose permissions you have.
    """
    now = call.services.clock()

    def revoke(tx: Transaction) -> tuple[Described, list[Endpoint]]:
        revoked = machines.revoke_machine(tx, _id(call), call.project, now, manager(call))
        return described(tx, revoked[0], now), disable_lapsed(tx, call.project.rowid, now)

    (revoked, maker), lapsed = await call.services.store.write(revoke)
    _stop(call, lapsed)
    return machine_view(revoked, now, maker)


def new_machine(
    body: CreateCredentialRequest,
    project: Project,
    by: tuple[Maker, str | None],
    secret: str,
    now: int,
    expires_at: int | None,
) -> Machine:
    """Return a credential that is not stored yet."""
    return Machine(
        0,
        new_id("mcr", now),
        project,
        body.name,
        frozenset(body.permissions),
        hash_secret(secret),
        secret[-4:],
        *by,
        now,
        own_expires_at=expires_at,
    )


Described = tuple[Machine, MakerState]
"""A credential with the state of its creator."""


def described(reader: machines.CredentialReader, machine: Machine, now: int) -> Described:
    """Return a credential with the state of its creator."""
    return machine, maker_state(reader, machine, now)


def manager(call: Call[Any, Any]) -> CredentialManager:
    """Return the caller as a manager of credentials."""
    machine = call.access.machine
    return CredentialManager(call.access.permissions, None if machine is None else machine.id)


def _stop(call: Call[Any, Any], lapsed: Iterable[Endpoint]) -> None:
    """Stop deliveries to endpoints that a commit has disabled."""
    for endpoint in lapsed:
        call.services.webhooks.change(endpoint)


def _maker(call: Call[Any, Any]) -> tuple[Maker, str | None]:
    machine = call.access.machine
    return ("user", call.user.id) if machine is None else ("machine", machine.id)


def _id(call: Call[Any, Any]) -> str:
    return call.path["credential_id"]
