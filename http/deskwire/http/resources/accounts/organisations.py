"""Organisations that the signed-in user is a member of."""

from __future__ import annotations

from typing import Final

from deskwire.engine.accounts.factors.changes import require_factor
from deskwire.engine.accounts.members import change_organisation as change
from deskwire.engine.accounts.members import membership_view, organisation_view
from deskwire.engine.accounts.people import Organisation
from deskwire.engine.accounts.proofs import vouched
from deskwire.engine.ports import Transaction
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
    errors=("no_owner_with_factor",),
    further=(nulls(*_NULLABLE),),
    records=("organisation.changed", "account.sessions_ended"),
)
async def change_organisation(call: Call[ChangeOrganisationRequest, Query]) -> Answer:
    """Change an organisation's name, the limits of its members' sessions, or whether it requires a second factor of them.

    The strictest limits of all organisations of a user apply, and never longer ones than the installation's. Sessions that have passed
    a new limit end with this call, and their streams, on all nodes; the others end by the new limit. `expiresAt` of `GET /v3/auth/session` follows.

    With `requireSecondFactor`, its routes and those of its projects answer 403 `second_factor_required_here` to users without
    one. To switch it on, you and an owner need a second factor.
    """
    organisation, user, now = call.organisation, call.user.rowid, call.services.clock()
    fields = dict(given_fields(call.body, _NULLABLE))
    required = fields.pop("require_second_factor", None)
    exempt, life = vouched(call.access.session), call.services.sessions.life

    def job(tx: Transaction) -> Organisation:
        if required is not None:
            require_factor(tx, organisation.rowid, user, required=required, vouched=exempt)
        return change(tx, organisation.id, fields, life, now)

    return organisation_view(await call.services.store.write(job), call.role)
