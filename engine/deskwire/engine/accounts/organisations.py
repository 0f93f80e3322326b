"""Deleting an organisation, which only the operator does (ADR 12)."""

from __future__ import annotations

from typing import Final

from deskwire.engine.accounts.people import Organisation
from deskwire.engine.accounts.ports import OrganisationTransaction
from deskwire.engine.accounts.projects import remove_project
from deskwire.engine.core.errors import Conflict

_ALL: Final = (1 << 63) - 1


def delete_organisation(
    tx: OrganisationTransaction, organisation: Organisation, at: int, *, with_accounts: bool
) -> list[str]:
    """Delete an organisation with its empty projects and all memberships; return the ids of accounts that were deleted with it.

    Args:
        with_accounts: whether accounts are deleted that are members of nothing then.

    Raises Conflict (`organisation_not_empty`) that names the projects which hold data; then nothing changes.
    """
    projects = tx.projects(organisation.rowid, None, _ALL, _ALL)
    if holding := [f"{each.name} ({each.id})" for each in projects if tx.project_is_used(each.rowid)]:
        raise Conflict(
            f"These projects of {organisation.name} hold contacts, events, endpoints or other data: {', '.join(holding)}. Only "
            "an organisation whose projects are empty can be deleted.",
            code="organisation_not_empty",
        )
    for project in projects:
        remove_project(tx, project, at)
    gone = []
    for member in tx.members(organisation.rowid, 0, _ALL):
        tx.delete_membership(organisation.rowid, member.user.rowid)
        if with_accounts and not tx.memberships(member.user.rowid, (-1, -1), 1):
            tx.delete_user(member.user.rowid, at)
            gone.append(member.user.id)
    tx.delete_organisation(organisation.rowid, at)
    return gone
