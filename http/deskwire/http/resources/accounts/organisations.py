"""Organisations that the signed-in user is a member of."""

from __future__ import annotations

from typing import Final

from deskwire.engine.accounts.members import change_organisation as change
from deskwire.engine.accounts.members import membership_view, organisation_view
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query, given_fields, nulls
from deskwire.http.api.pagination import page
from deskwire.http.api.routing import SIGNED_IN, Routes, Tag, fresh, in_organisation
from deskwire.http.resources.accounts.requests import AccountList, ChangeOrganisationRequest
from deskwire.http.schemas import people as shapes
from deskwire.http.schemas.base import page_of

routes = Routes(
    Tag("Organisations", "Organisations that the signed-in user is a member of."), in_organisation()
)
ONE = "/organisations/<organisation_id>"
_NULLABLE: Final = frozenset({"session_idle_s", "session_max_s"})


class OrganisationList(AccountList):
    """A page of organisations."""

    parts = 2


@routes.add(
    "GET",
    "/organisations",
    SIGNED_IN,
    operation_id="listOrganisations",
    query=OrganisationList,
    answer=page_of(shapes.Organisation),
)
async def list_organisations(call: Call[Body, OrganisationList]) -> Answer:
    """List the organisations of the signed-in user, oldest membership first."""
    user, query = call.user.rowid, call.query
    joined, organisation = query.place or (-1, -1)
    memberships = await call.services.store.read(
        lambda reader: reader.memberships(user, (joined, organisation), query.rows)
    )
    return page(query, memberships, membership_view, lambda each: (each.joined_at, each.organisation.rowid))


@routes.add("GET", ONE, operation_id="getOrganisation", answer=shapes.Organisation)
async def get_organisation(call: Call[Body, Query]) -> Answer:
    """Fetch an organisation."""
    return organisation_view(call.organisation, call.role)


@routes.add(
    "PATCH",
    ONE,
    fresh(in_organisation("members.manage")),
    operation_id="changeOrganisation",
    body=ChangeOrganisationRequest,
    answer=shapes.Organisation,
    further=(nulls(*_NULLABLE),),
    records=("organisation.changed", "account.sessions_ended"),
)
async def change_organisation(call: Call[ChangeOrganisationRequest, Query]) -> Answer:
    """Change an organisation's name and the limits of its members' sessions.

    The strictest limits of all organisations of a user apply, and never longer ones than the installation's. Sessions that have passed
    a new limit end with this call, and their streams, on all nodes; the others end by the new limit. `expiresAt` of `GET /v3/auth/session` follows.
    """
    identifier, changes, now = (
        call.organisation.id,
        given_fields(call.body, _NULLABLE),
        call.services.clock(),
    )
    life = call.services.sessions.life
    changed = await call.services.store.write(
        lambda tx: change(tx, identifier, changes, life, now),
    )
    return organisation_view(changed, call.role)
