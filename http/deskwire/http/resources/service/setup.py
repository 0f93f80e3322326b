"""The first steps of a project, for the check list of an empty desk."""

from __future__ import annotations

from typing import Any

from deskwire.engine.accounts.setup import SetupReader, steps
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import Routes, Tag, dashboard, personal
from deskwire.http.schemas import setup as shapes

routes = Routes(
    Tag("Setup", "See which first steps of a new project are done."),
    personal(dashboard("conversations.read")),
)


@routes.add("GET", "/setup", operation_id="getSetup", answer=shapes.Setup)
async def get_setup(call: Call[Body, Query]) -> Answer:
    """List the first steps that your role can do, and whether they are done."""
    project, user = call.project, call.user

    def read(reader: SetupReader) -> dict[str, Any]:
        state = reader.setup_state(project.rowid, project.organisation, user.rowid)
        return {"steps": steps(state, call.access.permissions)}

    return await call.services.store.read(read)
