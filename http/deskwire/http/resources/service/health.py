"""The health, readiness and version of the service."""

from __future__ import annotations

import trio
from werkzeug.http import parse_accept_header

from deskwire.engine.cluster.cluster import REDIRECT_DELAY_S
from deskwire.http.api.calls import Answer, BytesAnswer, Call
from deskwire.http.api.input.headers import is_trusted
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import OPEN, Routes, Tag
from deskwire.http.schemas import service as shapes

routes = Routes(
    Tag("Health", "Check that the service is alive and ready, and which version it is."),
    OPEN,
    prefix="",
    watching=True,
)


@routes.add("GET", "/healthz", operation_id="healthz", answer=shapes.Health)
async def healthz(call: Call[Body, Query]) -> Answer:
    """Check that the process is alive, and fetch its version and commit."""
    return {"status": "ok", "version": call.services.version, "commit": call.services.commit}


@routes.add(
    "GET",
    "/readyz",
    operation_id="readyz",
    answer=shapes.Readiness,
    errors=("not_ready", "storage_failed", "wrong_database"),
)
async def readyz(call: Call[Body, Query]) -> Answer:
    """Check that the service is ready for requests: started, with a working disk. Returns 503 otherwise.

    If a trusted proxy reports other ready nodes in `X-Ready-Nodes`, a node that is not ready sends its streams away.
    """
    refusal = await call.services.readiness.refusal()
    if refusal is not None:
        if _another_is_ready(call):
            call.services.hub.send_away_nowait()
            call.services.agents.send_away_nowait()
            call.services.customer_streams.send_away_nowait()
            if trio.current_time() >= call.services.cluster.valid_until + REDIRECT_DELAY_S:
                call.services.holding.refuse_all_nowait()
        raise refusal
    notices = call.services.readiness.notices
    return {"status": "ready", "notices": notices} if notices else {"status": "ready"}


@routes.add("GET", "/", operation_id="about", answer=shapes.ServiceInfo)
async def about(call: Call[Body, Query]) -> Answer:
    """Fetch the name and version of the service, and the path of its API. A browser is redirected to the desk."""
    if call.services.desk.shown and _for_reading(call.incoming.headers.get("accept")):
        return BytesAnswer(b"", "", {"Location": "desk", "Vary": "Accept"}, 303)
    return {"service": "deskwire", "version": call.services.version, "api": "/v3"}


def _another_is_ready(call: Call[Body, Query]) -> bool:
    """Return whether a trusted proxy reports that another node is ready."""
    ready = call.incoming.headers.get("x-ready-nodes") or ""
    counted = ready.isascii() and ready.isdigit() and len(ready) < 10 and int(ready) > 0
    return counted and is_trusted(call.address, call.services.trusted_proxies)


def _for_reading(accept: str | None) -> bool:
    """Return whether a client prefers a page over JSON."""
    wanted = parse_accept_header(accept)
    return (
        "text/html" in wanted.values() and wanted.best_match(["application/json", "text/html"]) == "text/html"
    )
