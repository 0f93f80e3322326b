"""The health of a project: deliveries of its events, waiting contacts, and the space for uploads."""

from __future__ import annotations

from typing import Any, Final, Protocol

from deskwire.engine.accounts.credential_ends import WARNING_MS, ending_view
from deskwire.engine.accounts.people import Project
from deskwire.engine.accounts.ports import OrganisationReader
from deskwire.engine.conversations.listing import ConversationFilter, ConversationSort
from deskwire.engine.conversations.ports import ConversationReader
from deskwire.engine.core.clock import iso, iso_or_none
from deskwire.engine.uploads.ports import UploadReader
from deskwire.engine.webhooks.endpoint import DROPPED_COUNT_MAX, DROPPED_WINDOW_MS, Endpoint, health_view
from deskwire.engine.webhooks.outcome import endpoint_name
from deskwire.engine.webhooks.ports import DeliveryReader
from deskwire.http.api.calls import Answer, Call
from deskwire.http.api.input.validation import Body, Query
from deskwire.http.api.routing import Routes, in_project
from deskwire.http.resources.accounts import projects
from deskwire.http.schemas import people as shapes

routes = Routes(projects.routes.tag, in_project("conversations.read"))

MANAGE_PROJECTS: Final = "projects.manage"
OUTSTANDING_MAX: Final = 10_000  # counted waiting deliveries of one endpoint

_LONGEST_WAIT: Final = ConversationSort("waiting", "desc")
_WAITING: Final = ConversationFilter(waiting=True, archived=False, snoozed=False)


class HealthReader(OrganisationReader, ConversationReader, DeliveryReader, UploadReader, Protocol):
    """Reads of credentials, conversations, deliveries and uploads."""


@routes.add("GET", f"{projects.ONE}/health", operation_id="getProjectHealth", answer=shapes.ProjectHealth)
async def get_health(call: Call[Body, Query]) -> Answer:
    """Fetch the health of a project: its endpoints and consumers, the longest wait for an answer, and the space for uploads.

    Endpoints are named by their description or host; their URLs need the permission `webhooks.manage`. Waiting deliveries
    of an endpoint, and deliveries dropped in the last 24 hours and not sent again, are counted up to 10,000. With the permission
    `projects.manage`, `credentialsEnding` has the server keys and machine credentials that expire within seven days, except those that
    were made for no longer.
    """
    project, now = call.project, call.services.clock()
    managing = MANAGE_PROJECTS in call.access.permissions
    found = await call.services.store.read(lambda reader: _read(reader, project, now, managing=managing))
    consumers = [
        {
            "channel": each.channel,
            "consumerId": each.consumer_id,
            "connected": each.connected,
            "lag": each.lag,
        }
        for each in await call.services.hub.consumers(project)
    ]
    return {**found, "consumers": consumers}


def _read(reader: HealthReader, project: Project, now: int, *, managing: bool) -> dict[str, Any]:
    endpoints = [
        _endpoint_view(
            each,
            reader.outstanding(each.rowid, OUTSTANDING_MAX),
            reader.dropped_since(project.rowid, each.rowid, now - DROPPED_WINDOW_MS, DROPPED_COUNT_MAX),
            now,
        )
        for each in reader.endpoints(project.rowid)
    ]
    ending = reader.credentials_ending(project.rowid, now, now + WARNING_MS) if managing else ()
    longest = reader.conversations(project.rowid, _WAITING, _LONGEST_WAIT, None, 1)
    return {
        "healthy": all(each["healthy"] for each in endpoints),
        "endpoints": endpoints,
        "outstanding": sum(each["outstanding"] for each in endpoints),
        "oldestWaiting": {
            "conversationId": longest[0].conversation.id,
            "waitingSince": iso(longest[0].conversation.waiting_since or now),
        }
        if longest
        else None,
        "uploads": {
            "usedBytes": reader.uploads_size(project.rowid),
            "quotaBytes": project.settings.upload_quota_bytes,
        },
        "credentialsEnding": [ending_view(each) for each in ending],
    }


def _endpoint_view(endpoint: Endpoint, outstanding: int, dropped: int, now: int) -> dict[str, Any]:
    return {
        "id": endpoint.id,
        "name": endpoint_name(endpoint),
        **health_view(endpoint, dropped),
        "status": endpoint.status,
        "statusReason": endpoint.status_reason,
        "circuit": endpoint.circuit.state(now),
        "circuitReason": endpoint.circuit.reason,
        "failingSince": iso_or_none(endpoint.circuit.failing_since),
        "lastDeliveryAt": iso_or_none(endpoint.last_delivery_at),
        "outstanding": outstanding,
    }
