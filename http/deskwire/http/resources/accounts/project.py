"""The project that a server key belongs to."""

from __future__ import annotations

from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import Routes, Tag, s2s
from deskwire.http.schemas import webhooks as shapes

routes = Routes(
    Tag("Project of a server key", "The project that a server key or machine credential belongs to."),
    s2s(None),
)


@routes.add("GET", "/s2s/project", operation_id="getOwnProject", answer=shapes.ServerProject)
async def get_own_project(call: Call[Body, Query]) -> Answer:
    """Fetch the project that the server key or machine credential belongs to, with the stream key to connect with."""
    project = call.project
    return {"id": project.id, "name": project.name, "streamKey": project.stream_key}
