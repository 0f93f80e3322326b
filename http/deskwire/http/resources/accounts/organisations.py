"""Organisations that the signed-in user is a member of."""

from __future__ import annotations

from deskwire.engine.accounts.factors import changes
from deskwire.engine.accounts.members import membership_view, organisation_view
from deskwire.engine.accounts.people import Organisation
from deskwire.engine.accounts.proofs import vouched
from deskwire.engine.ports import Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.pagination import page
from deskwire.http.api.routing import SIGNED_IN, Routes, Tag, fresh, in_organisation
from deskwire.http.resources.accounts.requests import AccountList, Name
from deskwire.http.schemas import people as shapes
from deskwire.http.schemas.base import page_of

routes = Routes(
    Tag("Organisations", "Organisations that the signed-in user is a member of."), in_organisation()
)
ONE = "/organisations/<organisation_id>"


class ChangeOrganisationRequest(Body):
    """The settings to change."""

    name: Name | None = None
    require_second_factor: bool | None = None


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
    errors=("no_owner_with_factor",),
    records=("organisation.changed",),
)
async def change_organisation(call: Call[ChangeOrganisationRequest, Query]) -> Answer:
    """Change an organisation's name, or whether it requires a second factor of its members.

    With `requireSecondFactor`, its routes and those of its projects answer 403 `second_factor_required_here` to users without
    one. To switch it on, you and an owner need a second factor.
    """
    organisation, body, user = call.organisation, call.body, call.user
    exempt = vouched(call.access.session)

    def change(tx: Transaction) -> Organisation:
        if body.name is not None:
            tx.rename_organisation(organisation.rowid, body.name)
        if body.require_second_factor is not None:
            changes.require_factor(
                tx, organisation.rowid, user.rowid, required=body.require_second_factor, vouched=exempt
            )
        changed = tx.organisation(organisation.id)
        assert changed is not None, "organisations are never removed"
        return changed

    return organisation_view(await call.services.store.write(change), call.role)
