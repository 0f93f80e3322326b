"""The project that a server key belongs to."""

from __future__ import annotations

from deskwire.http.routing import S2S, Answer, Call, Routes
from deskwire.http.shapes import webhooks as shapes
from deskwire.http.validation import Body, Query

routes = Routes(S2S)


@routes.add("GET", "/s2s/project", answer=shapes.ServerProject)
async def get_own_project(call: Call[Body, Query]) -> Answer:
    """The server key's project, and the stream key to connect with."""
    project = call.project
    return {"id": project.id, "name": project.name, "streamKey": project.stream_key}
