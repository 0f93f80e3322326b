"""Records the tour, and lists the operations that are no part of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.api.events.test_channels_agree import receiving
from tests.clients.tour import (
    accounts,
    agents,
    backend,
    customer_conversations,
    customer_events,
    customers,
    surveys,
)
from tests.clients.tour.recorder import Exchange, Recorder
from tests.support.api.openid import provider
from tests.support.api.service import running
from tests.support.sockets.issuer import issuing
from tests.support.sockets.model_server import model_server

_NDJSON: Final = "NDJSON, for which the guide recommends an HTTP library"
_CSV: Final = "CSV, for which the guide recommends an HTTP library"
_PAGE: Final = "a page or a file for browsers"

WITHOUT_JSON: Final[Mapping[str, str]] = {
    "cancelBulkJob": "a bulk job may end before the call",
    "requestPasswordLink": "the service of the tour sends no mails",
    **dict.fromkeys(
        (
            "importHistory",
            "exportConversations",
            "exportMessages",
            "exportTickets",
            "exportSurveyResponses",
            "exportAuditRecords",
        ),
        _NDJSON,
    ),
    **dict.fromkeys(
        (
            "exportFirstResponse",
            "exportTimeToClose",
            "exportCsat",
            "exportVolume",
            "exportBacklog",
            "exportResponses",
        ),
        _CSV,
    ),
    **dict.fromkeys(
        (
            "explorer",
            "explorerAsset",
            "errorPage",
            "desk",
            "deskNotificationWorker",
            "deskPlace",
            "deskFile",
            "widget",
            "widgetCustomer",
            "widgetDemo",
            "widgetFile",
            "widgetHost",
            "startOidcSignIn",
            "completeOidcSignIn",
        ),
        _PAGE,
    ),
    "endOidcSessions": "a form that an identity provider sends",
    "followStream": "server-sent events without an end",
    "followMyEvents": "server-sent events without an end",
    "uploadFile": "a multipart body",
    "uploadMyFile": "a multipart body",
    "fetchFile": "a file of any type",
    "metrics": "text for Prometheus",
}
"""The operations whose request or response is not JSON, with the reason."""

TOUR: Final = (
    backend.conversations,
    backend.workflow_steps,
    backend.contacts,
    backend.imports,
    backend.webhooks,
    backend.channels,
    backend.stream,
    agents.conversations,
    agents.inbox,
    agents.contacts,
    agents.workflows,
    agents.teams,
    agents.uploads,
    agents.translations,
    agents.tickets,
    agents.reports,
    surveys.surveys,
    customers.sessions,
    customer_conversations.conversations,
    backend.events,
    customer_events.events,
    accounts.signing_in,
    accounts.organisations,
    accounts.projects,
    accounts.audit,
    accounts.service,
)
"""The parts in their order: later ones use objects of earlier ones."""


async def recorded(directory: Path) -> list[Exchange]:
    """Run the whole tour against a service in a directory of its own; return all exchanges."""
    async with (
        receiving() as receiver,
        model_server() as model,
        issuing() as issuer,
        running(
            directory,
            model_url=model.url,
            model_name="m-1",
            oidc_named=(provider(directory.parent, issuer.url),),
        ) as service,
    ):
        model.answer({"transcript": "sorry", "reply": "We are sorry.", "themes": []})
        call = Recorder(service, receiver.url, issuer)
        for part in TOUR:
            await part(call)
    return call.exchanges
