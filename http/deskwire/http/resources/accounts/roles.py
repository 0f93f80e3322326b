"""Roles of an organisation: the built-in ones, and its own with the permissions that it chooses."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from deskwire.engine.accounts import custom_roles
from deskwire.engine.accounts.custom_roles import OrganisationRole, role_view, roles_of
from deskwire.engine.accounts.roles import MANAGE
from deskwire.engine.core.ids import new_id
from deskwire.engine.core.store import InlineQuery
from deskwire.engine.ports import Reader, Transaction
from deskwire.http.api.calls import Answer, Call, RawJson
from deskwire.http.api.input.validation import Body, Query, given_fields, nulls
from deskwire.http.api.pagination import page
from deskwire.http.api.routing import MEDIUM, SIGNED_IN, Routes, Tag, fresh, in_organisation
from deskwire.http.resources.accounts.credentials import Permissions
from deskwire.http.resources.accounts.members import acting_member
from deskwire.http.resources.accounts.organisations import ONE as ORGANISATION
from deskwire.http.resources.accounts.requests import AccountList, Name, printable
from deskwire.http.schemas import people as shapes
from deskwire.http.schemas.base import Deleted, page_of

routes = Routes(
    Tag("Roles", "Manage the roles of an organisation, which give permissions to its members."),
    in_organisation(),
)
_MANAGED: Final = fresh(in_organisation(MANAGE))
_ALL: Final = f"{ORGANISATION}/roles"
_ONE: Final = f"{_ALL}/<role_id>"

RoleDescription = Annotated[str, Field(max_length=500), printable]


class CreateRoleRequest(Body):
    """The new role. Its `permissions` must be permissions that you have."""

    name: Name
    description: RoleDescription = ""
    permissions: Permissions


class ChangeRoleRequest(Body):
    """The fields to change. `permissions` replaces all permissions."""

    name: Name | None = None
    description: RoleDescription | None = None
    permissions: Permissions | None = None


@routes.add("GET", "/permissions", SIGNED_IN, operation_id="listPermissions", answer=shapes.PermissionTable)
async def list_permissions(call: Call[Body, Query]) -> Answer:
    """List the permissions that roles and machine credentials can have, with the calls that each opens."""
    return RawJson(await call.services.permission_table.get())


@routes.add("GET", _ALL, operation_id="listRoles", query=AccountList, answer=page_of(shapes.Role))
async def list_roles(call: Call[Body, AccountList]) -> Answer:
    """List the roles of an organisation: the built-in ones, then its own, oldest first."""
    organisation, query = call.organisation.rowid, call.query
    after = 0 if query.row is None else query.row
    roles = await call.services.store.read(lambda reader: roles_of(reader, organisation))
    listed = [(number, role) for number, role in enumerate(roles, 1) if number > after]
    return page(query, listed[: query.rows], lambda each: role_view(each[1]), lambda each: each[0])


@routes.add("GET", _ONE, operation_id="getRole", answer=shapes.Role)
async def get_role(call: Call[Body, Query]) -> Answer:
    """Fetch a role. The ids of the built-in roles are `owner`, `admin`, `agent` and `viewer`."""
    organisation, role_id = call.organisation.rowid, call.path["role_id"]

    def find(reader: Reader) -> OrganisationRole:
        return custom_roles.role_of(reader, organisation, role_id)

    return role_view(await call.services.store.read(InlineQuery(find)))


@routes.add(
    "POST",
    _ALL,
    _MANAGED,
    operation_id="createRole",
    tells="roles",
    body=CreateRoleRequest,
    limit=MEDIUM,
    answer=shapes.Role,
    errors=("permission_not_held", "role_limit_reached", "role_name_taken"),
    idempotent=True,
    records=("role.created",),
)
async def create_role(call: Call[CreateRoleRequest, Query]) -> Answer:
    """Create a role. You can only give permissions that you have."""
    body, now, actor = call.body, call.services.clock(), acting_member(call)
    role = OrganisationRole(
        0,
        new_id("rol", now),
        call.organisation.rowid,
        body.name,
        body.description,
        frozenset(body.permissions),
        now,
    )

    def create(tx: Transaction) -> OrganisationRole:
        return custom_roles.create_role(tx, actor(tx), role)

    return await call.commit(create, role_view, role.id)


@routes.add(
    "PATCH",
    _ONE,
    _MANAGED,
    operation_id="changeRole",
    tells="roles",
    body=ChangeRoleRequest,
    limit=MEDIUM,
    answer=shapes.Role,
    errors=("permission_not_held", "role_built_in", "role_name_taken"),
    further=(nulls(),),
    records=("role.changed",),
)
async def change_role(call: Call[ChangeRoleRequest, Query]) -> Answer:
    """Change a role. Its members have the new permissions from their next call, and streams without the right to them end.

    You can only change a role whose permissions you have, before and after the change. The built-in roles can't be changed.
    """
    given, organisation, actor = (
        given_fields(call.body, frozenset()),
        call.organisation.rowid,
        acting_member(call),
    )
    if "permissions" in given:
        given["permissions"] = frozenset(given["permissions"])

    def change(tx: Transaction) -> OrganisationRole:
        return custom_roles.change_custom_role(tx, actor(tx), organisation, call.path["role_id"], **given)

    return role_view(await call.services.store.write(change))


@routes.add(
    "DELETE",
    _ONE,
    _MANAGED,
    operation_id="deleteRole",
    tells="roles",
    answer=Deleted,
    errors=("permission_not_held", "role_built_in", "role_in_use"),
    records=("role.deleted",),
)
async def delete_role(call: Call[Body, Query]) -> Answer:
    """Delete a role that no member has. You can only delete a role whose permissions you have."""
    organisation, actor = call.organisation.rowid, acting_member(call)

    def delete(tx: Transaction) -> OrganisationRole:
        return custom_roles.delete_custom_role(tx, actor(tx), organisation, call.path["role_id"])

    return {"id": (await call.services.store.write(delete)).id, "deleted": True}
