"""Whether the service lives and is ready, and what it is."""

from __future__ import annotations

from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import OPEN, Answer, Call, Routes, Tag
from deskwire.http.schemas import service as shapes

routes = Routes(
    Tag("Health", "Whether the service lives and is ready, and what it is."), OPEN, prefix="", watching=True
)


@routes.add("GET", "/healthz", operation_id="healthz", answer=shapes.Health)
async def healthz(_call: Call[Body, Query]) -> Answer:
    """The process answers."""
    return {"status": "ok"}


@routes.add(
    "GET", "/readyz", operation_id="readyz", answer=shapes.Readiness, errors=("not_ready", "storage_failed")
)
async def readyz(call: Call[Body, Query]) -> Answer:
    """Requests may be sent here: storage and front are up, and the disk takes what is written; 503 otherwise."""
    refusal = await call.services.readiness.refusal()
    if refusal is not None:
        raise refusal
    return {"status": "ready"}


@routes.add("GET", "/", operation_id="about", answer=shapes.About)
async def about(call: Call[Body, Query]) -> Answer:
    """What this is."""
    return {"service": "deskwire", "version": call.services.version, "api": "/v3"}
