"""The first steps of a project, for the check list of an empty desk, which a manager can hide."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from deskwire.engine.accounts.setup import SetupReader, setup_view
from deskwire.engine.ports import Transaction
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import Routes, Tag, dashboard, personal
from deskwire.http.resources.accounts.projects import found
from deskwire.http.schemas import setup as shapes

routes = Routes(
    Tag("Setup", "See which first steps of a new project are done, and hide them."),
    personal(dashboard("conversations.read")),
)
# The list disappears from the desks of all members, so seeing the list is not enough.
_HIDE: Final = personal(dashboard("projects.manage", "conversations.read"))


class PutSetupRequest(Body):
    """The visibility of the list for all members of the project."""

    hidden: bool


@routes.add("GET", "/setup", operation_id="getSetup", answer=shapes.Setup)
async def get_setup(call: Call[Body, Query]) -> Answer:
    """List the first steps that your role can do, and whether they are done."""
    return await call.services.store.read(_view_for(call))


@routes.add(
    "PUT",
    "/setup",
    _HIDE,
    operation_id="putSetup",
    tells="project",
    body=PutSetupRequest,
    answer=shapes.Setup,
    records=("setup.changed",),
)
async def put_setup(call: Call[PutSetupRequest, Query]) -> Answer:
    """Hide the list of first steps from all members of the project, or show it again.

    Open desks follow at once. The steps and their states stay the same.
    """
    identifier, hidden, view = call.project.id, call.body.hidden, _view_for(call)

    def put(tx: Transaction) -> dict[str, Any]:
        tx.hide_setup(found(tx, identifier), hidden=hidden)
        return view(tx)

    return await call.services.store.write(put)


def _view_for(call: Call[Any, Query]) -> Callable[[SetupReader], dict[str, Any]]:
    """Return the query of the list as the caller sees it."""
    project, user, permissions = call.project, call.user, call.access.permissions

    def view(reader: SetupReader) -> dict[str, Any]:
        state = reader.setup_state(project.rowid, project.organisation, user.rowid)
        return setup_view(state, permissions)

    return view
