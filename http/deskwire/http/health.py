"""Whether the service lives and is ready, and what it is."""

from __future__ import annotations

from deskwire.engine.errors import Unavailable
from deskwire.http.routing import OPEN, Answer, Call, Routes
from deskwire.http.shapes import service as shapes
from deskwire.http.validation import Body, Query

routes = Routes(OPEN, prefix="", watching=True)


@routes.add("GET", "/healthz", answer=shapes.Health)
async def healthz(_call: Call[Body, Query]) -> Answer:
    """The process answers."""
    return {"status": "ok"}


@routes.add("GET", "/readyz", answer=shapes.Readiness, errors=("not_ready",))
async def readyz(call: Call[Body, Query]) -> Answer:
    """Storage and front are up; 503 until then and while stopping."""
    if not call.services.readiness.up:
        raise Unavailable("The service is not ready.", code="not_ready")
    return {"status": "ready"}


@routes.add("GET", "/", answer=shapes.About)
async def about(call: Call[Body, Query]) -> Answer:
    """What this is."""
    return {"service": "deskwire", "version": call.services.version, "api": "/v3"}
