"""The figures of an endpoint: how many deliveries of each hour or day arrived, and how long they took (ADR 10)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Final

from pydantic import Field

from deskwire.engine.webhooks.endpoint import Endpoint
from deskwire.engine.webhooks.figures import Bucket, Figures, bucket_starts, figures_view, joined, parts_of
from deskwire.engine.webhooks.ports import DeliveryReader
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query, Time
from deskwire.http.api.routing import Routes
from deskwire.http.resources.webhooks import deliveries
from deskwire.http.resources.webhooks.endpoints import ONE, endpoint_of
from deskwire.http.schemas import webhooks as shapes

routes = Routes(deliveries.routes.tag, deliveries.routes.access)
_DAY_MS: Final = 86_400_000


class FigureQuery(Query):
    """The time since which deliveries are counted, and the length of a bucket."""

    since: Annotated[Time | None, Field(description="The last 24 hours if it is not given.")] = None
    bucket: Bucket = "hour"


@routes.add(
    "GET",
    f"{ONE}/figures",
    operation_id="getEndpointFigures",
    query=FigureQuery,
    answer=shapes.EndpointFigures,
)
async def get_figures(call: Call[Body, FigureQuery]) -> Answer:
    """Count the deliveries to an endpoint by the hour or day in which they were made, oldest first.

    Buckets begin at whole hours or days of UTC, and there are 168 at most: if `since` lies further back, the newest ones.
    A delivery counts as what has become of it by now; one that is held or tried again is `pending`. `latency` is of the
    newest 1,000 deliveries that arrived, from the making of the delivery.
    """
    query, find, now = call.query, endpoint_of(call), call.services.clock()
    since = now - _DAY_MS if query.since is None else query.since
    starts = bucket_starts(since, now, query.bucket)

    parts = [
        await call.services.store.read(_counted(call, find, part, until))
        for part, until in parts_of(starts, query.bucket)
    ]
    return figures_view(joined(parts), query.bucket)


def _counted(
    call: Call[Body, FigureQuery],
    find: Callable[[DeliveryReader], Endpoint],
    starts: Sequence[int],
    until: int | None,
) -> Callable[[DeliveryReader], Figures]:
    project = call.project.rowid
    return lambda reader: reader.delivery_figures(project, find(reader).rowid, starts, until)
